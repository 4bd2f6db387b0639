//! The colours of plots and page: the one table of them, and what they mean.

use fwdlab_stats::Verdict;

use crate::report::{Direction, VerdictSection};

/// A colour in both themes, as CSS writes it; the page's style has it as a property of that name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colour {
    pub(crate) name: &'static str,
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

pub(crate) const TEXT: Colour = colour("text", "#1f2328", "#e6edf3");
pub(crate) const MUTED: Colour = colour("muted", "#59636e", "#9198a1");
/// What text and plots are on.
pub(crate) const PAPER: Colour = colour("paper", "#ffffff", "#0d1117");
pub(crate) const LINE: Colour = colour("line", "#d1d9e0", "#3d444d");
pub(crate) const GRID: Colour = colour("grid", "#d1d9e0", "#2f353d");
pub(crate) const FRAME: Colour = colour("frame", "#818b98", "#656c76");
/// Blue-green: a variant forwards more than its baseline.
pub(crate) const BETTER: Colour = colour("better", "#00776b", "#2dd4bf");
/// Orange-red: it forwards less.
pub(crate) const WORSE: Colour = colour("worse", "#b8420a", "#ff8552");
/// No difference is shown, or none is looked for.
pub(crate) const CONTROL: Colour = colour("control", "#6e7781", "#9198a1");

/// Which variant is which: none of them is near blue-green or orange-red, which judge.
///
/// Those that colour-blind readers may take for each other have other shapes.
pub(crate) const SERIES: [Colour; 6] = [
    colour("c0", "#0072b2", "#3b9bdc"),
    colour("c1", "#b58900", "#e3c04a"),
    colour("c2", "#7b5cc4", "#a78bfa"),
    colour("c3", "#cc79a7", "#dd92bb"),
    colour("c4", "#3d97cf", "#8fd0f7"),
    colour("c5", "#7a5c2e", "#b59a6a"),
];

/// What a verdict is shown as, in every picture and on a terminal; a sign and a word say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Better,
    Worse,
    /// No difference is shown.
    Same,
    /// More blocks, or more load, may decide it.
    Open,
}

impl Tone {
    pub(crate) fn of(verdict: &VerdictSection) -> Self {
        match verdict.direction {
            Some(Direction::Faster) => Self::Better,
            Some(Direction::Slower) => Self::Worse,
            None if verdict.leaves_open || is_of_load(verdict) => Self::Open,
            None => Self::Same,
        }
    }

    /// Of its colour, in plots and on the page.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Open => "open",
        }
    }
}

/// Whether it is of the load, and so of no variant.
fn is_of_load(verdict: &VerdictSection) -> bool {
    verdict.words == Verdict::NotLimitedByDut.words()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linear red, green and blue.
    type Light = [f64; 3];

    fn light(hex: &str) -> Light {
        let part = |at: usize| {
            let byte = u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
            let value = f64::from(byte) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        [part(1), part(3), part(5)]
    }

    /// The contrast ratio of WCAG 2.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |hex| {
            let [red, green, blue] = light(hex);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// What an eye without the green cones sees: Machado, Oliveira and Fernandes 2009.
    fn deuteranope(light: Light) -> Light {
        const MATRIX: [Light; 3] = [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ];
        MATRIX.map(|row| {
            let sum: f64 = row.iter().zip(light).map(|(part, of)| part * of).sum();
            sum.clamp(0.0, 1.0)
        })
    }

    /// CIE 1976 L*a*b*, of D65.
    fn lab([red, green, blue]: Light) -> [f64; 3] {
        let f = |value: f64| {
            if value > 0.008_856 {
                value.cbrt()
            } else {
                7.787 * value + 16.0 / 116.0
            }
        };
        let x = f((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505);
        let y = f(0.2126 * red + 0.7152 * green + 0.0722 * blue);
        let z = f((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(one: Light, other: Light) -> f64 {
        let squares = lab(one).into_iter().zip(lab(other));
        squares
            .map(|(one, other)| (one - other).powi(2))
            .sum::<f64>()
            .sqrt()
    }

    fn themes(colour: Colour) -> [&'static str; 2] {
        [colour.light, colour.dark]
    }

    /// The page's style, which has the same colours: what is on its cards is read too.
    const STYLE: &str = include_str!("../page/src/page.css");
    const CARD: Colour = colour("card", "#f6f8fa", "#151b23");

    #[test]
    fn text_is_read_and_marks_are_seen_in_both_themes() {
        for (theme, name) in ["light", "dark"].into_iter().enumerate() {
            for colour in [TEXT, MUTED, BETTER, WORSE] {
                for behind in [PAPER, CARD] {
                    let contrast = contrast(themes(colour)[theme], themes(behind)[theme]);
                    let what = (colour.name, behind.name, name);
                    assert!(contrast >= 4.5, "{what:?}: {contrast}");
                }
            }
            for colour in SERIES.into_iter().chain([CONTROL]) {
                let contrast = contrast(themes(colour)[theme], themes(PAPER)[theme]);
                assert!(contrast >= 3.0, "{} {name}: {contrast}", colour.name);
            }
        }
    }

    /// Clearly apart is about 20; the two differ by about 55 for such an eye.
    #[test]
    fn better_and_worse_are_apart_without_green_cones_and_no_series_is_near_them() {
        for theme in 0..2 {
            let of = |colour: Colour| light(themes(colour)[theme]);
            let apart = distance(deuteranope(of(BETTER)), deuteranope(of(WORSE)));
            assert!(apart > 45.0, "{apart}");
            for series in SERIES {
                for judging in [BETTER, WORSE] {
                    let apart = distance(of(series), of(judging));
                    assert!(apart > 30.0, "{} {}: {apart}", series.name, judging.name);
                }
            }
        }
    }

    /// Five shapes go around six colours, so that each colour meets the shape of the one five further.
    #[test]
    fn variants_of_one_shape_are_apart_without_green_cones() {
        for theme in 0..2 {
            for index in 0..SERIES.len() {
                let of = |index: usize| {
                    let series = SERIES[index % SERIES.len()];
                    deuteranope(light(themes(series)[theme]))
                };
                let apart = distance(of(index), of(index + 5));
                assert!(apart > 20.0, "{index}: {apart}");
            }
        }
    }

    /// Blue-green has more green than red, orange-red more red than green and more green than blue.
    #[test]
    fn better_is_blue_green_and_worse_orange_red() {
        for theme in 0..2 {
            let [red, green, blue] = light(themes(BETTER)[theme]);
            assert!(green > 3.0 * red && blue > 3.0 * red && green > blue);
            let [red, green, blue] = light(themes(WORSE)[theme]);
            assert!(red > 3.0 * green && green > 2.0 * blue);
        }
    }

    #[test]
    fn the_page_has_the_colours_of_this_table() {
        let (bright, rest) = STYLE
            .split_once("@media (prefers-color-scheme: dark)")
            .expect("a dark theme");
        let dark = rest.split_once("}\n}").expect("its end").0;
        let shared = [TEXT, MUTED, PAPER, CARD, LINE, BETTER, WORSE, CONTROL];
        for colour in shared.into_iter().chain(SERIES) {
            for (theme, value) in [(bright, colour.light), (dark, colour.dark)] {
                let property = format!("  --{}: {value};", colour.name);
                assert!(theme.contains(&property), "page.css lacks {property}");
            }
        }
    }

    #[test]
    fn tones_are_what_verdicts_say() {
        let verdict = |direction, leaves_open| VerdictSection {
            words: "different".to_owned(),
            direction,
            sentence: String::new(),
            shows_difference: direction.is_some(),
            leaves_open,
            notes: Vec::new(),
        };
        for (direction, leaves_open, tone) in [
            (Some(Direction::Faster), false, Tone::Better),
            (Some(Direction::Slower), true, Tone::Worse),
            (None, true, Tone::Open),
            (None, false, Tone::Same),
        ] {
            assert_eq!(Tone::of(&verdict(direction, leaves_open)), tone);
        }
        assert_eq!(
            verdict(Some(Direction::Faster), false).said(),
            "different (faster)"
        );
        assert_eq!(verdict(None, false).said(), "different");
    }
}
