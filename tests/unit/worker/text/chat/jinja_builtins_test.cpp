#include <catch2/catch.hpp>

#include "tests/unit/worker/text/chat/rendering.hpp"

using namespace leasehold;
using namespace leasehold::testing;

TEST_CASE("jinja: methods of text") {
  check_examples(
      {{"[{{ space.strip() }}][{{ space.lstrip() }}][{{ space.rstrip() }}]", "[a b][a b \n][ a b]"},
       {"{{ 'xxaxx'.strip('x') }}{{ '#éa#é'.lstrip('é#') }}", "aa#é"},
       {"{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}", "['a', 'b', '', 'c']['a', 'b']"},
       {"{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}", "['a', 'b,c']['a,b', 'c']"},
       {"{{ ' a b  c '.split(none, 1) }}", "['a', 'b  c ']"},
       {"{{ word.startswith('Le') }}{{ word.endswith(('x', 'se')) }}", "TrueTrue"},
       {"{{ word.replace('e', 'E') }}{{ word.replace('e', '', 1) }}{{ 'ab'.replace('', '-') }}",
        "LEasELase-a-b-"},
       {"{{ word.upper() }}{{ word.lower() }}{{ \"they're\".title() }}{{ 'aB'.capitalize() }}",
        "LEASEleaseThey'ReAb"},
       {"{{ accent.find('v') }}{{ word.find('q') }}{{ word.rfind('e') }}{{ word.count('e') }}",
        "3-142"},
       {"{{ '-'.join(['a', 'b']) }}{{ 'a\nb'.splitlines() }}", "a-b['a', 'b']"},
       {"{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}{{ '12'.isdigit() }}",
        "bcabTrue"},
       {"{{ '{} {} {k} {{}}'.format(1, 2, k=3) }}{{ '{1}{0}'.format(1, 2) }}", "1 2 3 {}21"}});
}

TEST_CASE("jinja: methods of dicts and lists") {
  check_examples({{"{{ dict.get('a') }}{{ dict.get('q') }}{{ dict.get('q', 5) }}", "xNone5"},
                  {"{{ dict.keys() | list }}{{ dict.values() | list }}", "['b', 'a'][1, 'x']"},
                  {"{{ {'items': 1}['items'] }}", "1"},
                  {"{{ list.index(1) }}{{ [1, 1].count(1) }}", "12"}});
}

TEST_CASE("jinja: filters of text") {
  check_examples({{"[{{ space | trim }}]{{ 'xax' | trim('x') }}", "[a b]a"},
                  {"{{ word | upper }}{{ word | lower }}{{ 'aB' | capitalize }}", "LEASEleaseAb"},
                  {"{{ \"it's a-b (c\" | title }}", "It's A-B (C"},
                  {"{{ word | replace('e', 'x', 1) }}", "Lxase"},
                  {"{{ 'a\nb\n\nc\n' | indent }}", "a\n    b\n\n    c\n"},
                  {"{{ 'a\nb' | indent(2, true) }}", "  a\n  b"},
                  {"{{ 'a\n\nb' | indent(width=1, blank=true) }}", "a\n \n b"},
                  {"{{ '<a & \"b\">' | e }}{{ '<' | safe }}", "&lt;a &amp; &#34;b&#34;&gt;<"},
                  {"{{ [1, none, 'a'] | join('-') }}{{ messages | join(',', attribute='role') }}",
                   "1-None-asystem,user,assistant"},
                  {"{{ 1.0 | string }}{{ nothing | string }}", "1.0None"}});
}

TEST_CASE("jinja: tojson writes what json.dumps writes") {
  check_examples(
      {{"{{ messages[2] | tojson }}", R"({"role": "assistant", "content": "'Yes'", "note": 3})"},
       {"{{ {'a': [1, 2.0, none, true], 'b': {}, 'c': []} | tojson(indent=2) }}",
        "{\n  \"a\": [\n    1,\n    2.0,\n    null,\n    true\n  ],\n  \"b\": {},\n  "
        "\"c\": []\n}"},
       {"{{ 'é<\\n\"\\x01/' | tojson }}", "\"é<\\n\\\"\\u0001/\""},
       {"{{ 'é😀' | tojson(ensure_ascii=true) }}", "\"\\u00e9\\ud83d\\ude00\""},
       {"{{ dict | tojson(separators=(',', ':')) }}", R"({"b":1,"a":"x"})"},
       {"{{ dict | tojson(sort_keys=true) }}", R"({"a": "x", "b": 1})"},
       {"{{ {1: 2, none: 3} | tojson }}", R"({"1": 2, "null": 3})"}});
}

TEST_CASE("jinja: filters of lists") {
  check_examples(
      {{"{{ list | length }}{{ accent | count }}{{ dict | length }}{{ missing | length }}", "3520"},
       {"{{ list | first }}{{ list | last }}{{ [] | first }}", "32"},
       {"{{ list | sort }}{{ list | sort(reverse=true) }}{{ names | sort }}",
        "[1, 2, 3][3, 2, 1]['A', 'a', 'b', 'c']"},
       {"{{ names | sort(case_sensitive=true) }}{{ deep | sort(attribute='x.y') | "
        "map(attribute='x.y') "
        "| list }}",
        "['A', 'a', 'b', 'c'][1, 2]"},
       {"{{ names | unique | list }}{{ names | unique(case_sensitive=true) | list | length }}",
        "['b', 'A', 'c']4"},
       {"{{ list | reverse | list }}{{ 'ab' | reverse }}{{ 'ab' | list }}",
        "[2, 1, 3]ba['a', 'b']"},
       {"{{ dict | dictsort }}{{ {'a': 2, 'b': 1} | dictsort(by='value') }}",
        "[('a', 'x'), ('b', 1)][('b', 1), ('a', 2)]"},
       {"{{ dict | items | list }}{{ missing | items | list }}", "[('b', 1), ('a', 'x')][]"},
       {"{{ list | max }}{{ list | min }}{{ list | sum }}{{ names | max }}", "316c"},
       {"{{ deep | sum(attribute='x.y') }}", "3"}});
}

TEST_CASE("jinja: filters that apply filters and tests") {
  check_examples(
      {{"{{ names | map('upper') | join }}{{ list | map('string') | list }}",
        "BACA['3', '1', '2']"},
       {"{{ messages | map(attribute='role') | join(' ') }}", "system user assistant"},
       {"{{ messages | map(attribute='note', default=0) | list }}", "[0, 0, 3]"},
       {"{{ [0, 1, ''] | select | list }}{{ list | select('odd') | list }}", "[1][3, 1]"},
       {"{{ list | reject('eq', 1) | list }}", "[3, 2]"},
       {"{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | "
        "first }}",
        "Hi"},
       {"{{ messages | selectattr('note', 'defined') | list | length }}", "1"},
       {"{{ messages | rejectattr('role', 'in', ['user', 'system']) | map(attribute='role') "
        "| list }}",
        "['assistant']"},
       {"{{ messages | selectattr('note') | list | count }}", "1"}});
}

TEST_CASE("jinja: map, select and reject of none and of other false values are empty") {
  check_examples({{"{{ none | selectattr('x') | list }}{{ none | select | list }}", "[][]"},
                  {"{{ none | map('upper') | list }}{{ none | rejectattr('x') | list }}", "[][]"},
                  {"{{ missing | reject('odd') | list }}{{ 0 | select | list }}", "[][]"}});
}

TEST_CASE("jinja: letters beyond ASCII change case") {
  check_examples({{"{{ accent | upper }}{{ 'ÉA' | lower }}{{ 'éA' | capitalize }}", "NAÏVEéaÉa"},
                  {"{{ 'éa àB' | title }}", "Éa Àb"}});
}

TEST_CASE("jinja: filters of numbers, and default") {
  check_examples(
      {{"{{ '42' | int }}{{ '4.7' | int }}{{ 'x' | int }}{{ 'x' | int(5) }}", "42405"},
       {"{{ '0x1f' | int(0, 16) }}{{ -3.9 | int }}", "31-3"},
       {"{{ '1.5' | float }}{{ 'x' | float }}{{ n | float }}", "1.50.07.0"},
       {"{{ -3 | abs }}{{ 2.5 | round }}{{ 3.5 | round | int }}{{ 2.675 | round(2) }}",
        "32.042.67"},
       {"{{ 42.55 | round(1, 'floor') }}{{ 42.1 | round(0, 'ceil') }}", "42.543.0"},
       {"{{ missing | default('d') }}{{ '' | default('d') }}{{ '' | d('e', true) }}", "de"}});
}

TEST_CASE("jinja: tests") {
  check_examples(
      {{"{{ n is defined }}{{ missing is undefined }}{{ nothing is none }}", "TrueTrueTrue"},
       {"{{ word is string }}{{ dict is mapping }}{{ list is iterable }}{{ 'a' is sequence }}",
        "TrueTrueTrueTrue"},
       {"{{ n is iterable }}{{ n is number }}{{ yes is number }}{{ yes is integer }}",
        "FalseTrueTrueFalse"},
       {"{{ yes is boolean }}{{ yes is true }}{{ 1 is true }}{{ yes is false }}",
        "TrueTrueFalseFalse"},
       {"{{ half is float }}{{ n is odd }}{{ n is even }}{{ n is divisibleby 7 }}",
        "TrueTrueFalseTrue"},
       {"{{ n is equalto 7 }}{{ n is eq(8) }}{{ 3 is in list }}{{ n is not none }}",
        "TrueFalseTrueTrue"},
       {"{{ 'a' is lower }}{{ 'A' is upper }}{{ n is gt 3 }}{{ range is callable }}",
        "TrueTrueTrueTrue"}});
}

TEST_CASE("jinja: functions") {
  check_examples({{"{{ range(3) | list }}{{ range(1, 4) | list }}{{ range(5, 0, -2) | list }}",
                   "[0, 1, 2][1, 2, 3][5, 3, 1]"},
                  {"{{ dict | length }}", "2"},
                  {"{% set d = namespace(f=1) %}{{ d.f }}", "1"},
                  {"{{ strftime_now('%d %b %Y') }}[{{ strftime_now('') }}]", "20 Nov 2024[]"}});
}
