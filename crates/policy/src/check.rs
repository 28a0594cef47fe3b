//! What a configuration must hold beyond its shape.
use crate::diagnostics::Problem;
use crate::model::Model;
pub(crate) fn check(_model: &Model) -> Vec<Problem> {
    Vec::new()
}
