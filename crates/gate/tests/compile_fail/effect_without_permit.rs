use lychgate_gate::Effect;

async fn act<E: Effect>(effect: E) {
    effect.perform().await;
}

fn main() {}
