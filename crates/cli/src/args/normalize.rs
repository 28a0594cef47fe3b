//! The flags of `normalize`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use lychgate_intake::streams::Provider;

/// `normalize`
#[derive(Debug, Args)]
#[command(after_help = "\
One JSON line a block, in the provider's order: `act` (what a harness would execute), `text`,
`refused` with its reason, `reasoning`, `provider_executed` (run by the provider, past every gate),
`provider_data`. Nothing is repaired. Bedrock: binary frames, or one JSON event a line.

Exit status: 0 nothing refused, 1 something refused, or a stream that is malformed or that the
provider did not end, 2 wrong usage.

Example:
  curl -sN $URL -d @request.json | lychgate normalize --provider openai-chat")]
pub(crate) struct Normalize {
    /// Whose stream it is
    #[arg(long, value_name = "NAME", value_parser = names().try_map(|name| name.parse::<Provider>()))]
    pub(crate) provider: Provider,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(Provider::ALL.map(Provider::name))
}
