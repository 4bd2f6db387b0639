//! `fwdlab plan`.
pub(crate) fn plan(_: &crate::args::PlanArguments) -> anyhow::Result<crate::exit::Code> {
    unimplemented!()
}
