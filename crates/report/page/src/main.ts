// The script of report.html.

import "uplot/dist/uPlot.min.css";
import "./page.css";

import { embedded, type Report } from "./data";
import { flameGraphs } from "./flame";
import { nameBlocks, nameRecords, Tip } from "./pointer";
import { makeFilter, makeSortable } from "./tables";
import { trialPlots } from "./trials";

const report = embedded<Report>("report");
if (report) {
  const tip = new Tip();
  makeSortable(document);
  nameRecords();
  nameBlocks(report, tip);
  const plots = trialPlots(report, tip);
  makeFilter(plots.filter);
  flameGraphs(tip);
}
