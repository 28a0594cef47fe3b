//! Writing HTML so that nothing from outside becomes part of it.

use std::fmt::Display;

use lychgate_core::display::escape;

/// Markup in the making. Text gets in through [`Markup::text`] or an attribute's value only, escaped for a person's
/// eyes and then for HTML; tags are this program's own words.
#[derive(Debug, Default)]
pub(super) struct Markup(String);

impl Markup {
    /// Our own markup, as it is.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text, whoever wrote it.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        self.0.push_str(&safe(&text.to_string()));
        self
    }

    /// Text of several lines.
    pub(super) fn lines(&mut self, text: &str) -> &mut Self {
        for line in text.lines() {
            self.0.push_str(&safe(line));
            self.0.push('\n');
        }
        self
    }

    /// An element with a text in it.
    pub(super) fn element(
        &mut self,
        open: &'static str,
        text: impl Display,
        close: &'static str,
    ) -> &mut Self {
        self.raw(open).text(text).raw(close)
    }

    /// An empty tag with attributes: `<rect x="1"/>`.
    pub(super) fn tag(
        &mut self,
        name: &'static str,
        attributes: &[(&'static str, &dyn Display)],
    ) -> &mut Self {
        self.start(name, attributes);
        self.0.truncate(self.0.len() - 1);
        self.raw("/>")
    }

    /// A tag with attributes that is closed later.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        attributes: &[(&'static str, &dyn Display)],
    ) -> &mut Self {
        self.raw("<").raw(name);
        for (attribute, value) in attributes {
            self.raw(" ").raw(attribute).raw("=\"");
            self.0.push_str(&safe(&value.to_string()));
            self.raw("\"");
        }
        self.raw(">")
    }

    /// More markup.
    pub(super) fn with(&mut self, more: &Self) -> &mut Self {
        self.0.push_str(&more.0);
        self
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Text for a page: what moves, hides or overwrites is escaped, and what HTML gives a meaning to. Our own few marks
/// stay.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What was escaped once stays as it is: `escape` doubles a backslash.
            '\\' | '…' | '·' | '→' | '–' | '—' | '×' | '✓' => out.push(c),
            c => out.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let mut page = Markup::default();
        page.element("<b>", "<script>alert('x')</script>\u{202e}&\u{0}", "</b>");
        page.tag("rect", &[("class", &"\" onload=\"x")]);
        assert_eq!(
            page.finish(),
            "<b>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\\u{202e}&amp;\\u{0}</b>\
             <rect class=\"&quot; onload=&quot;x\"/>"
        );
    }
}
