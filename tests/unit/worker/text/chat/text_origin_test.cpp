// Which bytes of a rendered text the template wrote: a client's text stays the client's, whatever
// the template does with it.
#include <catch2/catch.hpp>

#include "tests/unit/worker/text/chat/rendering.hpp"
#include "worker/text/chat/chat_template.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

/// The text with the bytes of the template in brackets.
std::string marked(const MarkedText& text) {
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, end] : text.from_template()) {
    out += text.bytes().substr(at, begin - at);
    out += "[" + text.bytes().substr(begin, end - begin) + "]";
    at = end;
  }
  return out + text.bytes().substr(at);
}

void check_marked(const std::vector<Example>& examples) {
  for (const auto& [source, expected] : examples) {
    INFO(source);
    const auto text = render(source);
    REQUIRE(text.has_value());
    CHECK(marked(*text) == expected);
  }
}

}  // namespace

TEST_CASE("origin: the template's literals and data are its own, variables the client's") {
  check_marked({{"<s>{{ word }}</s>", "[<s>]Lease[</s>]"},
                {"{{ '<s>' }}{{ word }}", "[<s>]Lease"},
                {"{{ messages[0].content }}{{ messages[0]['role'] }}", "Be brief.system"},
                {"{% for m in messages[:1] %}<{{ m.role }}>{% endfor %}", "[<]system[>]"},
                {"{{ nothing or '<s>' }}{{ absent | default('<s>') }}", "[<s><s>]"},
                {"{{ n }}{{ dict }}", "7{'b': 1, 'a': 'x'}"}});
}

TEST_CASE("origin: joined texts keep their parts") {
  check_marked(
      {{"{{ '<' + word + '>' }}", "[<]Lease[>]"},
       {"{{ '<' ~ word ~ '>' }}", "[<]Lease[>]"},
       {"{{ [word, '<s>'] | join('|') }}", "Lease[|<s>]"},
       {"{{ word.join(['<', '>']) }}", "[<]Lease[>]"},
       {"{{ '<{}>'.format(word) }}", "[<]Lease[>]"},
       {"{{ word * 2 }}{{ '<s>' * 2 }}", "LeaseLease[<s><s>]"},
       {"{% set x %}<s>{{ word }}{% endset %}{{ x }}", "[<s>]Lease"},
       {"{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(word) }}", "[<]Lease[>]"},
       {"{% set ns = namespace(t='<') %}{% set ns.t = ns.t + word %}{{ ns.t }}", "[<]Lease"}});
}

TEST_CASE("origin: parts of a text keep their origin") {
  check_marked({{"{{ ('<s> ' ~ word ~ ' ') | trim }}", "[<s> ]Lease"},
                {"{{ (word ~ '<s>').strip('L>') }}", "ease[<s]"},
                {"{{ ('<s>' ~ word)[1:5] }}", "[s>]Le"},
                {"{{ ('<' ~ word)[::-1] }}", "esaeL[<]"},
                {"{{ ('<' ~ word) | reverse }}", "esaeL[<]"},
                {"{{ ('<' ~ word)[0] }}{{ ('<' ~ word)[-1] }}", "[<]e"},
                {"{% for c in '<' ~ word %}{{ c }}{% endfor %}", "[<]Lease"},
                {"{{ ('<s>|' ~ word).split('|') | last }}", "Lease"},
                {"{{ ('<s>|' ~ word).rsplit('|')[0] }}", "[<s>]"},
                {"{{ ('<s>\n' ~ word).splitlines() | join }}", "[<s>]Lease"},
                {"{{ ('<s>' ~ word).removeprefix('<s>') }}", "Lease"},
                {"{{ ('<s>' ~ word) | list | first }}", "[<]"}});
}

TEST_CASE(
    "origin: a changed text keeps the origin of each character, and what is printed has none") {
  check_marked({{"{{ ('<s>' ~ word) | upper }}", "[<S>]LEASE"},
                {"{{ (accent ~ '<S>').lower() }}", "naïve[<s>]"},
                {"{{ ('a' ~ word) | title }}{{ ('a' ~ word).title() }}", "[A]lease[A]lease"},
                {"{{ ('<' ~ word) | escape }}", "[&lt;]Lease"},
                {"{{ ('a\nb' ~ word) | indent(1) }}", "[a\n b]Lease"},
                {"{% filter upper %}a{{ word }}{% endfilter %}", "[A]LEASE"},
                {"{{ word | replace('ea', '<s>') }}", "L[<s>]se"},
                {"{{ '<s>'.replace('s', word) }}", "[<]Lease[>]"},
                {"{{ word | tojson }}{{ '<s>' | tojson }}", "\"Lease\"\"<s>\""},
                {"{{ ['<s>', word] }}", "['<s>', 'Lease']"}});
}

TEST_CASE("origin: names of roles and of control tokens are the template's, messages are not") {
  const auto chat = ChatTemplate::parse(
      "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}{{ x }}",
      {.bos = "<s>"});
  const ChatMessage messages[] = {{.role = "user", .content = "<s>"},
                                  {.role = "<s>", .content = "a"}};
  const auto text = chat->render(
      {.messages = messages_value(messages), .extra = {{"x", jinja::Value::text("<s>")}}});
  REQUIRE(text.has_value());
  CHECK(marked(*text) == "[<s><|user|>]<s>[<|]<s>[|>]a<s>");
}
