//! OpenAI Chat Completions: calls by `index`, sealed together by `finish_reason`.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};

use lychgate_core::json::{Object, Value};

use super::arguments;
use super::block::{Act, Content, FUNCTION};
use super::out::Out;
use super::reason::Reason;
use super::take;

#[derive(Debug, Default)]
pub(super) struct Chat {
    text: Words,
    reasoning: Words,
    /// By index; the deprecated single `function_call` stands behind them all.
    calls: BTreeMap<u64, Call>,
    /// Refusals for what has no index, by the id it came under.
    stray: BTreeMap<String, Reason>,
    finish: Option<String>,
    /// The order in which text, reasoning and calls were first seen.
    seen: usize,
    calls_seen: usize,
    ended: bool,
}

/// What the model says, in the one field a message has for it.
#[derive(Debug, Default)]
struct Words {
    text: String,
    /// When it was first seen; 0 for never.
    seen: usize,
    /// The member it came in.
    member: &'static str,
}

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    /// Whether any piece of arguments came, an empty one too.
    spoke: bool,
    custom: bool,
    refused: Option<Reason>,
}

impl Chat {
    pub(super) fn done(&mut self) -> Result<(), Reason> {
        if std::mem::replace(&mut self.ended, true) {
            return Err(Reason::AfterEnd);
        }
        Ok(())
    }

    pub(super) fn event(
        &mut self,
        name: &str,
        mut event: Object,
        out: &mut Out,
    ) -> Result<(), Reason> {
        if name == "error" || take::take(&mut event, "error").is_some() {
            return Err(Reason::ProviderError);
        }
        if self.ended {
            return Err(Reason::AfterEnd);
        }
        if !event.contains_key("choices") && !event.contains_key("usage") {
            return Err(Reason::EventUnknown);
        }
        for choice in take::array(&mut event, "choices")? {
            let Value::Object(choice) = choice else {
                return Err(Reason::Shape);
            };
            self.choice(choice, out)?;
        }
        Ok(())
    }

    pub(super) fn close(&mut self, reason: Reason, out: &mut Out) {
        if self.finish.is_none() {
            self.seal(Some(reason), out);
        }
    }

    pub(super) const fn is_ended(&self) -> bool {
        self.finish.is_some()
    }

    fn choice(&mut self, mut choice: Object, out: &mut Out) -> Result<(), Reason> {
        let other = choice
            .get("index")
            .is_some_and(|index| !matches!(index, Value::Null) && index.as_u64() != Some(0));
        // A whole message in a stream is another account of the same answer.
        if take::take(&mut choice, "message").is_some() {
            return Err(Reason::SourcesDisagree);
        }
        let mut delta = take::object(&mut choice, "delta")?.unwrap_or_default();
        let finish = take::label(&mut choice, "finish_reason")?;
        if other {
            let acts = take::take(&mut delta, "tool_calls").is_some()
                || take::take(&mut delta, "function_call").is_some();
            if acts && self.finish.is_none() {
                self.stray(String::new(), Reason::OtherCandidate, out)?;
            }
            return Ok(());
        }
        self.delta(delta, out)?;
        if let Some(reason) = finish
            && self.finish.is_none()
        {
            let whole = matches!(reason.as_str(), "stop" | "tool_calls" | "function_call");
            self.finish = Some(reason);
            self.seal((!whole).then_some(Reason::CutShort), out);
        }
        Ok(())
    }

    fn delta(&mut self, mut delta: Object, out: &mut Out) -> Result<(), Reason> {
        for member in ["reasoning_content", "reasoning"] {
            if let Some(Value::String(text)) = take::take(&mut delta, member) {
                self.seen += 1;
                self.reasoning.add(member, &text, self.seen, out)?;
            }
        }
        for member in ["content", "refusal"] {
            if let Some(text) = take::label(&mut delta, member)? {
                if self.finish.is_some() {
                    return Err(Reason::AfterSeal);
                }
                self.seen += 1;
                self.text.add(member, &text, self.seen, out)?;
            }
        }
        let pieces = take::array(&mut delta, "tool_calls")?;
        let alone = take::object(&mut delta, "function_call")?;
        if pieces.is_empty() && alone.is_none() {
            return Ok(());
        }
        if self.finish.is_some() {
            return Err(Reason::AfterSeal);
        }
        self.seen += 1;
        if self.calls_seen == 0 {
            self.calls_seen = self.seen;
        }
        let mut places = BTreeSet::new();
        for piece in pieces {
            let Value::Object(piece) = piece else {
                return Err(Reason::Shape);
            };
            self.piece(piece, &mut places, out)?;
        }
        if let Some(function) = alone {
            let call = slot(&mut self.calls, ALONE, out)?;
            function_piece(call, function, out)?;
        }
        Ok(())
    }

    fn piece(
        &mut self,
        mut piece: Object,
        places: &mut BTreeSet<u64>,
        out: &mut Out,
    ) -> Result<(), Reason> {
        let id = take::label(&mut piece, "id")?;
        let Some(index) = take::index(&mut piece, "index").filter(|index| *index < ALONE) else {
            // A piece without an id goes on with whatever came before it.
            let under = id.or_else(|| self.stray.keys().next_back().cloned());
            return self.stray(under.unwrap_or_default(), Reason::IndexMissing, out);
        };
        let call = slot(&mut self.calls, index, out)?;
        if !places.insert(index) {
            call.refuse(Reason::IndexRepeated);
        }
        match (&call.id, id) {
            (Some(held), Some(id)) if *held != id => call.refuse(Reason::IdChanged),
            (None, Some(id)) => call.id = Some(id),
            _ => {}
        }
        match take::label(&mut piece, "type")?.as_deref() {
            None | Some("function") => {}
            Some("custom") => call.custom = true,
            Some(_) => call.refuse(Reason::UnknownBlock),
        }
        if let Some(function) = take::object(&mut piece, "function")? {
            function_piece(call, function, out)?;
        }
        if let Some(mut custom) = take::object(&mut piece, "custom")? {
            call.custom = true;
            if let Some(input) = take::take(&mut custom, "input") {
                custom.insert("arguments".to_owned(), input);
            }
            function_piece(call, custom, out)?;
        }
        Ok(())
    }

    fn stray(&mut self, id: String, reason: Reason, out: &mut Out) -> Result<(), Reason> {
        let bytes = id.len();
        if let Place::Vacant(place) = self.stray.entry(id) {
            out.begin()?;
            out.keep(bytes)?;
            place.insert(reason);
        }
        Ok(())
    }

    /// Everything leaves at once: calls in the order of their indexes, words where they were first seen.
    fn seal(&mut self, cut: Option<Reason>, out: &mut Out) {
        let mut words = [
            std::mem::take(&mut self.reasoning),
            std::mem::take(&mut self.text),
        ];
        words.sort_by_key(|words| words.seen);
        let [first, second] = words;
        let mut words = vec![(first, 0), (second, 0)];
        words.retain(|(words, _)| words.seen > 0);
        let (before, after): (Vec<_>, Vec<_>) = words
            .into_iter()
            .partition(|(words, _)| self.calls_seen == 0 || words.seen < self.calls_seen);
        for (words, _) in before {
            words.seal(cut, out);
        }
        let mut calls = std::mem::take(&mut self.calls);
        refuse_twins(&mut calls);
        for call in calls.into_values() {
            call.seal(cut, out);
        }
        for reason in std::mem::take(&mut self.stray).into_values() {
            out.refuse(reason);
        }
        for (words, _) in after {
            words.seal(cut, out);
        }
    }
}

impl Words {
    fn add(
        &mut self,
        member: &'static str,
        text: &str,
        seen: usize,
        out: &mut Out,
    ) -> Result<(), Reason> {
        out.keep(text.len())?;
        if self.seen == 0 {
            out.begin()?;
            self.seen = seen;
            self.member = member;
        }
        self.text.push_str(text);
        Ok(())
    }

    fn seal(self, cut: Option<Reason>, out: &mut Out) {
        // Words that the provider itself cut short were said all the same; words of a broken stream are not whole.
        if let Some(reason) = cut.filter(|reason| *reason != Reason::CutShort) {
            return out.refuse(reason);
        }
        let mut replay = Object::new();
        replay.insert(self.member.to_owned(), Value::from(self.text.as_str()));
        let content = if self.member.starts_with("reasoning") {
            Content::Reasoning
        } else {
            Content::Text(self.text)
        };
        out.push(content, Some(Value::Object(replay)));
    }
}

impl Call {
    fn refuse(&mut self, reason: Reason) {
        self.refused.get_or_insert(reason);
    }

    fn seal(self, cut: Option<Reason>, out: &mut Out) {
        match self.act(cut, out) {
            Ok((act, replay)) => out.push(Content::Act(act), Some(replay)),
            Err(reason) => out.refuse(reason),
        }
    }

    fn act(&self, cut: Option<Reason>, out: &Out) -> Result<(Act, Value), Reason> {
        if let Some(reason) = self.refused.or(cut) {
            return Err(reason);
        }
        let limits = out.limits();
        let name = self.name.as_deref();
        let (form, kind, member, value) = if self.custom {
            let text = Value::from(self.arguments.as_str());
            let input = Object::from_members(vec![("input".to_owned(), text)]);
            let input = Value::Object(input.unwrap_or_default());
            ("custom_tool_call", "custom", "input", input)
        } else if self.spoke {
            let value = arguments::from_text(&self.arguments, limits)?;
            (FUNCTION, "function", "arguments", value)
        } else {
            (FUNCTION, "function", "arguments", arguments::empty())
        };
        let act = Act::seal(form, name, &value, self.id.clone(), limits)?;
        let mut inner = Object::new();
        inner.insert("name".to_owned(), Value::from(act.name.as_str()));
        inner.insert(member.to_owned(), Value::from(self.arguments.as_str()));
        let mut call = Object::new();
        if let Some(id) = &self.id {
            call.insert("id".to_owned(), Value::from(id.as_str()));
        }
        call.insert("type".to_owned(), Value::from(kind));
        call.insert(kind.to_owned(), Value::Object(inner));
        Ok((act, Value::Object(call)))
    }
}

fn slot<'a>(
    calls: &'a mut BTreeMap<u64, Call>,
    index: u64,
    out: &mut Out,
) -> Result<&'a mut Call, Reason> {
    if !calls.contains_key(&index) {
        out.begin()?;
    }
    Ok(calls.entry(index).or_default())
}

/// A name (once, or the same again) and a piece of arguments.
fn function_piece(call: &mut Call, mut function: Object, out: &mut Out) -> Result<(), Reason> {
    match (&call.name, take::label(&mut function, "name")?) {
        (Some(held), Some(name)) if *held != name => call.refuse(Reason::NameChanged),
        (None, Some(name)) => call.name = Some(name),
        _ => {}
    }
    match take::take(&mut function, "arguments") {
        None => {}
        Some(Value::String(text)) => {
            out.keep(text.len())?;
            call.spoke = true;
            if call.arguments.len().saturating_add(text.len()) > out.limits().arguments_bytes {
                call.refuse(Reason::ArgumentsTooLarge);
            } else {
                call.arguments.push_str(&text);
            }
        }
        Some(_) => call.refuse(Reason::ArgumentsNotText),
    }
    Ok(())
}

/// One id on two places: nobody can say which of them an answer would be for.
fn refuse_twins(calls: &mut BTreeMap<u64, Call>) {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<String> = calls
        .values()
        .filter_map(|call| call.id.clone())
        .filter(|id| !seen.insert(id.clone()))
        .collect();
    for call in calls.values_mut() {
        if call.id.as_ref().is_some_and(|id| twice.contains(id)) {
            call.refuse(Reason::IdRepeated);
        }
    }
}

/// Where the deprecated `function_call` stands.
const ALONE: u64 = u64::MAX;
