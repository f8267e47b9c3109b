#include <catch2/catch.hpp>

#include "tests/unit/worker/text/chat/rendering.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

Errc code_of(std::string_view source, const jinja::Limits& limits = {}) {
  const auto text = render(source, limits);
  INFO(source);
  REQUIRE_FALSE(text.has_value());
  return text.error().code;
}

std::string repeated(std::string_view text, int times) {
  std::string whole;
  for (int i = 0; i < times; ++i) whole += text;
  return whole;
}

}  // namespace

TEST_CASE("jinja: an unsupported construct is named with its line") {
  check_errors("UnsupportedModel",
               {{"a\n{% include 'x' %}", "line 2: the tag 'include' is not supported"},
                {"\n\n{{ n | groupby('x') }}", "line 3: the filter 'groupby' is not supported"},
                {"{{ n is sameas 3 }}", "line 1: the test 'sameas' is not supported"},
                {"{{ list.append(1) }}", "line 1: the method 'append' is not supported"},
                {"{{ lipsum() }}", "line 1: the function 'lipsum' is not supported"},
                {"{{ range(*list) }}", "line 1: '*' arguments are not supported"},
                {"{{ '%s' % n }}", "line 1: formatting text with '%'"},
                {"{{ 'ß' | upper }}", "line 1: the case mapping of 'ß'"},
                {"{{ accent.title() }}", "line 1: title case of letters beyond ASCII"},
                {"{% for i in list recursive %}{% endfor %}", "line 1: recursive loops"}});
}

TEST_CASE("jinja: an unknown filter in a branch that is not taken is ignored") {
  CHECK(rendered("{% if not yes %}{{ n | groupby('x') }}{% endif %}a") == "a");
}

TEST_CASE("jinja: a syntax error names its line and the expected token") {
  check_errors("UnsupportedModel",
               {{"{% if n %}a", "line 1: expected 'endif', got the end of the template"},
                {"{{ n", "line 1: '}}' is missing"},
                {"{% for i list %}", "expected 'in', got 'list'"},
                {"{{ n + }}", "expected an expression, got '}}'"},
                {"\n{{ 'a }}", "line 2: a string has no closing quote"},
                {"{# a", "a comment has no '#}'"},
                {"{% raw %}a", "'raw' without 'endraw'"},
                {"{{ (n] }}", "']' has no opening bracket"},
                {"{% break %}", "'break' outside a loop"},
                {"{% for i in list %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
                 "'break' outside a loop"},
                {"{{ n ? 1 : 2 }}", "unexpected character '?'"},
                {"{{ 99999999999999999999 }}", "is too large"},
                {"{{ '\\ud800' }}", "is not a character"}});
}

TEST_CASE("jinja: an exception of Python is a bad request with its line") {
  check_errors("BadRequest",
               {{"\n{{ missing.x }}", "line 2: 'missing' is undefined"},
                {"{{ dict.zzz.x }}", "'dict' has no 'zzz'"},
                {"{{ missing + 1 }}", "'missing' is undefined"},
                {"{{ 'a' + 1 }}", "'+' is not supported between 'str' and 'int'"},
                {"{{ 1 / 0 }}", "division by zero"},
                {"{{ 'a' < 1 }}", "cannot be ordered"},
                {"{{ 1 in 2 }}", "'int' is not a container"},
                {"{% for i in n %}{% endfor %}", "'int' cannot be iterated"},
                {"{% set a, b = list %}", "cannot unpack 3 values into 2"},
                {"{% set dict.a = 1 %}", "'dict' is not a namespace"},
                {"{{ 9223372036854775807 + 1 }}", "an integer overflows 64 bits"},
                {"{{ n() }}", "'int' cannot be called"},
                {"{{ word.upper(1) }}", "does not take this argument"},
                {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "'m' does not take this argument"},
                {"{{ missing | tojson }}", "'undefined' is not JSON serializable"}});
}

TEST_CASE("jinja: raise_exception ends the rendering with the template's text") {
  CHECK(rendered("a{{ raise_exception('Only ' ~ n) }}") ==
        "BadRequest: the model's chat template refuses these messages: Only 7");
}

TEST_CASE("jinja: the text of raise_exception is one printable line of at most 1024 bytes") {
  const std::string refused = "BadRequest: the model's chat template refuses these messages: ";
  CHECK(rendered("{{ raise_exception('a\x1b[2J\nZo\u00eb') }}") == refused + "a [2J Zo\u00eb");
  CHECK(rendered("{{ raise_exception('a' ~ '\u00eb' * 1000) }}").size() == refused.size() + 1023);
}

TEST_CASE("jinja: the output of a template is bounded") {
  const jinja::Limits small{.output_bytes = 1000};
  CHECK(code_of("{% for i in range(1001) %}a{% endfor %}", small) == Errc::PromptTooLong);
  CHECK(code_of("{{ 'a' * 1001 }}", small) == Errc::PromptTooLong);
  CHECK(code_of("{{ 'a' * 9223372036854775807 }}") == Errc::PromptTooLong);
  CHECK(code_of("{{ word.replace('', 'a' * 900) }}", small) == Errc::PromptTooLong);
  CHECK(render("{% for i in range(1000) %}a{% endfor %}", small)->size() == 1000);
}

TEST_CASE("jinja: the steps of a template are bounded") {
  const std::string thousand = "{% for i in range(1000) %}";
  const std::string end = "{% endfor %}";
  CHECK(code_of(thousand + thousand + thousand + end + end + end) == Errc::PromptTooLong);
  CHECK(code_of(thousand + thousand + "{% set v = word == word * 999 %}" + end + end) ==
        Errc::PromptTooLong);
  CHECK(code_of("{% set ns = namespace(v='ab') %}" + thousand + "{% set ns.v = ns.v ~ ns.v %}" +
                end) == Errc::PromptTooLong);
  CHECK(code_of("{% set ns = namespace(v=[1]) %}" + thousand + "{% set ns.v = ns.v + ns.v %}" +
                end) == Errc::PromptTooLong);
  CHECK(code_of("{{ range(100001) }}") == Errc::UnsupportedModel);
  CHECK(code_of("{{ range(0, 9223372036854775807) }}") == Errc::UnsupportedModel);
}

TEST_CASE("jinja: searches take linear time") {
  // A naive search takes about 10^10 steps here.
  const std::string source =
      "{% set hay = 'a' * 200000 %}{% set needle = 'a' * 100000 ~ 'b' %}"
      "{{ hay.find(needle) }}{{ needle in hay }}{{ hay.split(needle) | length }}";
  CHECK(rendered(source) == "-1False1");
}

TEST_CASE("jinja: the nesting of templates, macros and values is bounded") {
  CHECK(code_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}") == Errc::UnsupportedModel);
  CHECK(code_of("{{ " + repeated("(", 5000) + repeated(")", 5000) + " }}") ==
        Errc::UnsupportedModel);
  CHECK(code_of("{{ " + repeated("-", 5000) + "1 }}") == Errc::UnsupportedModel);
  CHECK(code_of("{{ 1" + repeated(" + 1", 5000) + " }}") == Errc::UnsupportedModel);
  CHECK(code_of("{{ n" + repeated(".a", 5000) + " }}") == Errc::UnsupportedModel);
  CHECK(code_of(repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000)) ==
        Errc::UnsupportedModel);
  CHECK(code_of("{% set ns = namespace(v=[]) %}{% for i in range(5000) %}{% set ns.v = [ns.v] %}{% "
                "endfor %}") == Errc::UnsupportedModel);
  CHECK(rendered("{{ 1" + repeated(" ~ 1", 150) + " }}") == repeated("1", 151));
}

TEST_CASE("jinja: a namespace that contains itself is freed") {
  // The address sanitizer reports leaks.
  CHECK(rendered("{% set a = namespace() %}{% set a.self = a %}{% set a.list = [a] %}ok") == "ok");
  CHECK(
      rendered(
          "{% set ns = namespace() %}{% for i in list %}{% macro m() %}{{ i }}{% endmacro %}{% "
          "set ns.m = m %}{% endfor %}{{ ns.m() }}") ==
      "UnsupportedModel: the chat template, line 1: the macro 'm' is called after the loop it was "
      "defined in");
}
