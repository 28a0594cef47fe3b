//! OpenAI Responses: items by `item_id`, whose accounts (pieces, `.done`, `output_item.done`, `response.completed`) must
//! agree; sealed together by `response.completed`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lychgate_core::json::{Object, Value};

use super::arguments;
use super::block::{Act, Content, FUNCTION, ProviderCall};
use super::item::{ItemKind, acting, words};
use super::out::Out;
use super::reason::Reason;
use super::take;

#[derive(Debug, Default)]
pub(super) struct Responses {
    items: Vec<Item>,
    /// Where an item lies, by its id.
    by_id: HashMap<String, usize>,
    ended: bool,
}

#[derive(Debug, Default)]
struct Item {
    id: String,
    index: Option<u64>,
    added: Object,
    /// The text of arguments or input in pieces, and whether there was any.
    pieces: Option<String>,
    /// The same text as `.done` has it.
    whole: Option<String>,
    /// What a message says, in pieces.
    words: Option<String>,
    done: Option<Object>,
    refused: Option<Reason>,
}

impl Responses {
    pub(super) fn event(
        &mut self,
        name: &str,
        mut event: Object,
        out: &mut Out,
    ) -> Result<(), Reason> {
        let kind = take::kind(&mut event, name)?;
        match kind.as_str() {
            "error" | "response.failed" | "response.cancelled" => {
                return Err(Reason::ProviderError);
            }
            "keepalive" | "ping" => return Ok(()),
            _ if self.ended => return Err(Reason::AfterEnd),
            _ => {}
        }
        match kind.as_str() {
            "response.output_item.added" => self.added(event, out),
            "response.output_item.done" => self.done(event, out),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.piece(event, out)
            }
            "response.function_call_arguments.done" => self.whole(event, "arguments", out),
            "response.custom_tool_call_input.done" => self.whole(event, "input", out),
            "response.output_text.delta" | "response.refusal.delta" => self.says(event, out),
            "response.completed" | "response.incomplete" => {
                let mut response = take::object(&mut event, "response")?.unwrap_or_default();
                let output = match response.remove("output") {
                    None | Some(Value::Null) => None,
                    Some(Value::Array(items)) => Some(items),
                    Some(_) => return Err(Reason::Shape),
                };
                self.ended = true;
                let cut = (kind == "response.incomplete").then_some(Reason::CutShort);
                self.seal(cut, output, out);
                Ok(())
            }
            // Progress of what the items themselves account for.
            _ if kind.starts_with("response.") => Ok(()),
            _ => Err(Reason::EventUnknown),
        }
    }

    pub(super) fn close(&mut self, reason: Reason, out: &mut Out) {
        if !self.ended {
            self.seal(Some(reason), None, out);
        }
    }

    pub(super) const fn is_ended(&self) -> bool {
        self.ended
    }

    /// The item an event speaks of. One that never was added gets a place, refused.
    fn item(&mut self, event: &mut Object, out: &mut Out) -> Result<&mut Item, Reason> {
        let id = take::label(event, "item_id")?.unwrap_or_default();
        let index = take::index(event, "output_index");
        let item = self.slot(id, out)?.0;
        if item.added.is_empty() && item.done.is_none() {
            item.refuse(Reason::NotStarted);
        }
        if index.is_some() && item.index.is_some() && index != item.index {
            item.refuse(Reason::SourcesDisagree);
        }
        Ok(item)
    }

    /// The item with this id, and whether it is new.
    fn slot(&mut self, id: String, out: &mut Out) -> Result<(&mut Item, bool), Reason> {
        let known = self.by_id.get(&id).copied();
        let at = known.unwrap_or(self.items.len());
        if known.is_none() {
            out.begin()?;
            let refused = id.is_empty().then_some(Reason::IdMissing);
            self.by_id.insert(id.clone(), at);
            self.items.push(Item {
                id,
                refused,
                ..Item::default()
            });
        }
        let item = self.items.get_mut(at).ok_or(Reason::Shape)?;
        Ok((item, known.is_none()))
    }

    fn added(&mut self, mut event: Object, out: &mut Out) -> Result<(), Reason> {
        let index = take::index(&mut event, "output_index");
        let item = take::object(&mut event, "item")?.ok_or(Reason::Shape)?;
        let id = take::peek(&item, "id").unwrap_or_default().to_owned();
        let (slot, new) = self.slot(id, out)?;
        if !new {
            slot.refuse(Reason::IdRepeated);
        }
        slot.index = index;
        slot.added = item;
        Ok(())
    }

    fn done(&mut self, mut event: Object, out: &mut Out) -> Result<(), Reason> {
        let index = take::index(&mut event, "output_index");
        let item = take::object(&mut event, "item")?.ok_or(Reason::Shape)?;
        out.keep(text_bytes(&item))?;
        let id = take::peek(&item, "id").unwrap_or_default().to_owned();
        let (slot, new) = self.slot(id, out)?;
        if new {
            slot.refuse(Reason::NotStarted);
        }
        if index.is_some() && slot.index.is_some() && index != slot.index {
            slot.refuse(Reason::SourcesDisagree);
        }
        slot.index = slot.index.or(index);
        match &slot.done {
            Some(held) if !agree(held, &item) => slot.refuse(Reason::SourcesDisagree),
            Some(_) => {}
            None => slot.done = Some(item),
        }
        Ok(())
    }

    fn piece(&mut self, mut event: Object, out: &mut Out) -> Result<(), Reason> {
        let delta = take::take(&mut event, "delta");
        let most = out.limits().arguments_bytes;
        out.keep(delta.as_ref().and_then(Value::as_str).map_or(0, str::len))?;
        let item = self.item(&mut event, out)?;
        if item.whole.is_some() || item.done.is_some() {
            item.refuse(Reason::AfterSeal);
        }
        let pieces = item.pieces.get_or_insert_default();
        match delta {
            Some(Value::String(text)) if pieces.len().saturating_add(text.len()) <= most => {
                pieces.push_str(&text);
            }
            Some(Value::String(_)) => item.refuse(Reason::ArgumentsTooLarge),
            _ => item.refuse(Reason::ArgumentsNotText),
        }
        Ok(())
    }

    fn whole(&mut self, mut event: Object, member: &str, out: &mut Out) -> Result<(), Reason> {
        let said = take::take(&mut event, member);
        out.keep(said.as_ref().and_then(Value::as_str).map_or(0, str::len))?;
        let item = self.item(&mut event, out)?;
        match said {
            Some(Value::String(text)) => match &item.whole {
                Some(held) if *held != text => item.refuse(Reason::SourcesDisagree),
                _ => item.whole = Some(text),
            },
            None => {}
            Some(_) => item.refuse(Reason::ArgumentsNotText),
        }
        Ok(())
    }

    fn says(&mut self, mut event: Object, out: &mut Out) -> Result<(), Reason> {
        let delta = take::text(&mut event, "delta")?.unwrap_or_default();
        out.keep(delta.len())?;
        let item = self.item(&mut event, out)?;
        item.words.get_or_insert_default().push_str(&delta);
        Ok(())
    }

    fn seal(&mut self, cut: Option<Reason>, output: Option<Vec<Value>>, out: &mut Out) {
        let mut items = std::mem::take(&mut self.items);
        items.sort_by_key(|item| item.index.unwrap_or(u64::MAX));
        refuse_twins(&mut items);
        let mut last = output.map(|items| items.into_iter().map(Some).collect::<Vec<_>>());
        for (at, item) in items.iter_mut().enumerate() {
            if let Some(last) = &mut last {
                let same = match last.get_mut(at).and_then(Option::take) {
                    Some(Value::Object(last)) => {
                        item.done.as_ref().is_none_or(|done| agree(done, &last))
                    }
                    _ => false,
                };
                if !same {
                    item.refuse(Reason::SourcesDisagree);
                }
            }
            let (content, replay) = item.content(cut, out);
            out.push(content, replay);
        }
        // What only the last account has was never streamed.
        if last.is_some_and(|last| last.iter().any(Option::is_some)) {
            out.refuse(Reason::SourcesDisagree);
        }
    }
}

impl Item {
    fn refuse(&mut self, reason: Reason) {
        self.refused.get_or_insert(reason);
    }

    fn content(&mut self, cut: Option<Reason>, out: &Out) -> (Content, Option<Value>) {
        let item = self.done.as_ref().unwrap_or(&self.added);
        let form = take::peek(item, "type").unwrap_or_default().to_owned();
        let kind = ItemKind::of(&form);
        if kind == ItemKind::Provider {
            // Whatever is wrong with the account of it, it may have run.
            let call = ProviderCall {
                name: take::peek(item, "name").map(str::to_owned),
                provider_id: Some(self.id.clone()).filter(|id| !id.is_empty()),
                form,
            };
            return (
                Content::ProviderExecuted(call),
                self.done.take().map(Value::Object),
            );
        }
        let acts = !matches!(
            kind,
            ItemKind::Message | ItemKind::Reasoning | ItemKind::Data
        );
        let cut = cut.filter(|_| acts || self.done.is_none());
        if let Some(reason) = self.refused.or(cut) {
            return (Content::Refused(reason), None);
        }
        let Some(done) = self.done.take() else {
            return (Content::Refused(Reason::Unsealed), None);
        };
        let content = if !agree_with_start(&self.added, &done) {
            Content::Refused(Reason::SourcesDisagree)
        } else {
            match kind {
                ItemKind::Message => {
                    let said = words(&done);
                    if self.words.as_ref().is_some_and(|words| *words != said) {
                        Content::Refused(Reason::SourcesDisagree)
                    } else {
                        Content::Text(said)
                    }
                }
                ItemKind::Reasoning => Content::Reasoning,
                ItemKind::Data => Content::ProviderData,
                _ => self
                    .act(kind, &done, out)
                    .map_or_else(Content::Refused, Content::Act),
            }
        };
        (content, Some(Value::Object(done)))
    }

    fn act(&self, kind: ItemKind, done: &Object, out: &Out) -> Result<Act, Reason> {
        if matches!(
            take::peek(done, "status"),
            Some("incomplete" | "in_progress" | "failed")
        ) {
            return Err(Reason::CutShort);
        }
        let id = take::peek(done, "call_id").map(str::to_owned);
        let (form, name, arguments) = match kind {
            ItemKind::Function => {
                let text = self.text(done, "arguments")?;
                let value = match text {
                    Some(text) => arguments::from_text(text, out.limits())?,
                    None => arguments::empty(),
                };
                (FUNCTION, take::peek(done, "name"), value)
            }
            ItemKind::Harness(form, name, members) => {
                if members.contains(&"input") {
                    self.text(done, "input")?;
                }
                let name = take::peek(done, "name").or(Some(name));
                (form, name, acting(done, members))
            }
            _ => return Err(Reason::UnknownBlock),
        };
        Act::seal(form, name, &arguments, id, out.limits())
    }

    /// The one text that every account of it has.
    fn text<'a>(&'a self, done: &'a Object, member: &str) -> Result<Option<&'a str>, Reason> {
        let last = match done.get(member) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(_) => return Err(Reason::ArgumentsNotText),
        };
        let mut accounts = [self.pieces.as_deref(), self.whole.as_deref(), last]
            .into_iter()
            .flatten();
        let first = accounts.next();
        if accounts.any(|other| Some(other) != first) {
            return Err(Reason::SourcesDisagree);
        }
        Ok(first)
    }
}

/// Whether two whole accounts of an item are of the same block with the same content.
fn agree(one: &Object, other: &Object) -> bool {
    let same = |member: &str| one.get(member) == other.get(member);
    [
        "type",
        "id",
        "call_id",
        "name",
        "arguments",
        "input",
        "action",
        "actions",
        "operation",
    ]
    .into_iter()
    .all(same)
        && words(one) == words(other)
}

/// Whether what the start said of kind and names still holds.
fn agree_with_start(added: &Object, done: &Object) -> bool {
    ["type", "call_id", "name"].into_iter().all(|member| {
        take::peek(added, member).is_none() || take::peek(added, member) == take::peek(done, member)
    })
}

/// Two items on one place, or two calls under one id: nobody can say which is meant.
fn refuse_twins(items: &mut [Item]) {
    let mut places = BTreeMap::<u64, usize>::new();
    let mut ids = BTreeMap::<String, BTreeSet<usize>>::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(index) = item.index {
            *places.entry(index).or_default() += 1;
        }
        let known = item.done.as_ref().unwrap_or(&item.added);
        if let Some(id) = take::peek(known, "call_id") {
            ids.entry(id.to_owned()).or_default().insert(at);
        }
    }
    let twice: BTreeSet<usize> = ids
        .into_values()
        .filter(|items| items.len() > 1)
        .flatten()
        .collect();
    for (at, item) in items.iter_mut().enumerate() {
        if item
            .index
            .is_some_and(|index| places.get(&index) > Some(&1))
        {
            item.refuse(Reason::IndexRepeated);
        }
        if twice.contains(&at) {
            item.refuse(Reason::IdRepeated);
        }
    }
}

/// Roughly what an item holds.
fn text_bytes(item: &Object) -> usize {
    item.iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(16, str::len))
        .sum()
}
