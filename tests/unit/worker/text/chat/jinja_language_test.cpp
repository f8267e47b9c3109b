#include <catch2/catch.hpp>

#include "tests/unit/worker/text/chat/rendering.hpp"

using namespace leasehold;
using namespace leasehold::testing;

TEST_CASE("jinja: a newline after a block is removed, one after a value is kept") {
  check_examples({{"{% if yes %}\na\n{% endif %}\nb", "a\nb"},
                  {"{{ n }}\nb", "7\nb"},
                  {"{# note #}\nb", "b"},
                  {"{% if yes +%}\na{% endif %}", "\na"},
                  {"a\n", "a"},
                  {"a\n\n", "a\n"},
                  {"a\r\nb\rc", "a\nb\nc"}});
}

TEST_CASE("jinja: spaces between the start of a line and a block are removed") {
  check_examples({{"a\n  {% if yes %}b{% endif %}", "a\nb"},
                  {"  {% if yes %}b{% endif %}", "b"},
                  {"a  {% if yes %}b{% endif %}", "a  b"},
                  {"a\n  {%+ if yes %}b{% endif %}", "a\n  b"},
                  {"a\n  {{ n }}", "a\n  7"},
                  {"a\n  {# note #}b", "a\nb"}});
}

TEST_CASE("jinja: a minus removes all space on its side") {
  check_examples({{"a \n {{- n -}} \n b", "a7b"},
                  {"a \n {%- if yes -%} \n b \n {%- endif -%} \n c", "abc"},
                  {"a \xc2\xa0{{- n }}", "a7"},
                  {"a \n {#- note -#} \n b", "ab"}});
}

TEST_CASE("jinja: raw text is not interpreted") {
  check_examples({{"{% raw %}{{ n }}{% if %}{% endraw %}", "{{ n }}{% if %}"},
                  {"a {%- raw -%} b {%- endraw -%} c", "abc"}});
}

TEST_CASE("jinja: brackets inside an expression do not end it") {
  check_examples({{"{{ {'a': {'b': 1}}['a']['b'] }}", "1"},
                  {"{{ '}}' }}", "}}"},
                  {"{{ '%}' ~ \"{{\" }}", "%}{{"}});
}

TEST_CASE("jinja: literals are Python's") {
  check_examples({{R"({{ 'a\n\t\x41\u00e9\\\'' }})", "a\n\tA\xc3\xa9\\'"},
                  {R"({{ 'a\qb' "c" }})", "a\\qbc"},
                  {"{{ 1_000 + 2 }}", "1002"},
                  {"{{ 1.5e3 }} {{ 2.0 }} {{ 1e16 }} {{ 0.00001 }}", "1500.0 2.0 1e+16 1e-05"},
                  {"{{ [1, 'a', none, true] }}", "[1, 'a', None, True]"},
                  {"{{ (1,) }} {{ () }} {{ (1) }}", "(1,) () 1"},
                  {"{{ {'a': 1, 2: [\"it's\"], 'a': 3} }}", "{'a': 3, 2: [\"it's\"]}"}});
}

TEST_CASE("jinja: operators bind as in Jinja") {
  check_examples({{"{{ 1 + 2 * 3 }}", "7"},
                  {"{{ 2 ** 3 ** 2 }}", "64"},
                  {"{{ 1 ~ 2 * 3 }}", "16"},
                  {"{{ 'a' ~ 1 * 2 ~ none }}", "a2None"},
                  {"{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }}", "-4 2 -2 3.5"},
                  {"{{ -7.5 // 2 }} {{ -7.5 % 2 }}", "-4.0 0.5"},
                  {"{{ not yes or n == 7 and half > 2 }}", "True"},
                  {"{{ 1 < n <= 7 }} {{ 1 < n < 7 }}", "True False"},
                  {"{{ -n | abs }} {{ 'a' if not yes else 'b' }}", "7 b"},
                  {"{{ n if yes }}|{{ n if not yes }}", "7|"},
                  {"{{ 'x' in word or 'ea' in word }} {{ 9 not in list }}", "True True"},
                  {"{{ 'b' in dict }} {{ 'q' in missing }}", "True False"}});
}

TEST_CASE("jinja: values behave as Python's do") {
  check_examples(
      {{"{{ 'ab' * 2 }} {{ [1] * 2 + [3] }}", "abab [1, 1, 3]"},
       {"{{ 1 == 1.0 == true }} {{ [1] == [1.0] }} {{ (1,) == [1] }}", "True True False"},
       {"{{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }}", "True True"},
       {"{{ yes + 1 }} {{ nothing }} {{ missing }}|", "2 None |"},
       {"{{ '' or 0 or [] or {} or none or 'last' }}", "last"},
       {"{{ 'kept' and 0 }}", "0"},
       {"{{ missing is defined }} {{ missing == other }}", "False True"}});
}

TEST_CASE("jinja: elements, attributes and slices") {
  check_examples(
      {{"{{ list[0] }}{{ list[-1] }}{{ list[9] }}", "32"},
       {"{{ dict.a }}{{ dict['b'] }}{{ dict.zzz }}", "x1"},
       {"{{ messages[-1]['content'] }}{{ messages.0.role }}", "'Yes'system"},
       {"{{ accent[2] }}{{ accent[::-1] }}", "ïevïan"},
       {"{{ list[1:] }}{{ list[:-1] }}{{ list[::2] }}{{ list[5:] }}", "[1, 2][3, 1][3, 2][]"},
       {"{{ word[1:3] }}{{ word[-9:2] }}{{ word[3:0:-1] }}", "eaLesae"},
       {"{{ dict.items() | list }}", "[('b', 1), ('a', 'x')]"}});
}

TEST_CASE("jinja: an if takes the first true branch") {
  check_examples({{"{% if 0 %}a{% elif n > 5 %}b{% elif yes %}c{% else %}d{% endif %}", "b"},
                  {"{% if missing %}a{% else %}d{% endif %}", "d"},
                  {"{% if yes %}{% set v = 1 %}{% endif %}{{ v }}", "1"}});
}

TEST_CASE("jinja: loop has the position of the iteration") {
  check_examples(
      {{"{% for i in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.length "
        "}}{{ loop.first }}{{ loop.last }} {% endfor %}",
        "1033TrueFalse 2123FalseFalse 3213FalseTrue "},
       {"{% for i in list %}{{ loop.previtem }}<{{ i }}<{{ loop.nextitem }} {% endfor %}",
        "<3<1 3<1<2 1<2< "},
       {"{% for i in list %}{{ loop.cycle('a', 'b') }}{% endfor %}", "aba"},
       {"{% for a in list %}{% for b in [1] %}{{ loop.depth }}{% endfor %}{{ loop.depth }}{% "
        "endfor %}",
        "111111"}});
}

TEST_CASE("jinja: loops unpack, filter, stop early and have an else") {
  check_examples(
      {{"{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}", "b=1;a=x;"},
       {"{% for i in list if i > 1 %}{{ loop.length }}:{{ i }} {% endfor %}", "2:3 2:2 "},
       {"{% for i in [] %}a{% else %}none{% endfor %}", "none"},
       {"{% for i in list %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}", "3"},
       {"{% for i in list %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "32"},
       {"{% for i in missing %}a{% endfor %}{% for c in 'ab' %}{{ c }}.{% endfor %}", "a.b."},
       {"{% for i in 3, 4 %}{{ i }}{% endfor %}", "34"}});
}

TEST_CASE("jinja: a loop's variables end with the iteration, except in a namespace") {
  check_examples(
      {{"{% set v = 0 %}{% for i in list %}{% set v = v + i %}{{ v }}{% endfor %}{{ v }}", "3120"},
       {"{% set ns = namespace(v=0) %}{% for i in list %}{% set ns.v = ns.v + i %}{% endfor "
        "%}{{ "
        "ns.v }}",
        "6"},
       {"{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns.c }}", "12"}});
}

TEST_CASE("jinja: set takes a value, several, or a block") {
  check_examples({{"{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"},
                  {"{% set v %}x{{ n }}{% endset %}{{ v }}{{ v | length }}", "x72"},
                  {"{% set v | upper | trim %} x {% endset %}{{ v }}", "X"},
                  {"{% set ns = namespace() %}{% set ns.v %}q{% endset %}{{ ns.v }}", "q"}});
}

TEST_CASE("jinja: macros have defaults and see the scope of their definition") {
  check_examples(
      {{"{% macro m(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, "
        "c=2) }}",
        "1B1 1B2"},
       {"{% set v = 1 %}{% macro m() %}{{ v }}{{ inner }}{% endmacro %}{% for inner in [5] "
        "%}{{ m() "
        "}}{% endfor %}",
        "1"},
       {"{% macro m(k) %}{% if k %}{{ k }}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
        "321"},
       {"{% macro m(a) %}<{{ caller(a) }}>{% endmacro %}{% call(x) m(3) %}-{{ x }}-{% "
        "endcall %}",
        "<-3->"}});
}

TEST_CASE("jinja: blocks with a scope of their own") {
  check_examples({{"{% filter upper %}a{{ word }}{% endfilter %}", "ALEASE"},
                  {"{% generation %}a{{ n }}{% set v = 1 %}{% endgeneration %}{{ v }}", "a7"},
                  {"{% with v = 1, w = 2 %}{{ v }}{{ w }}{% endwith %}{{ v }}", "12"}});
}
