#include "tests/checks/demo/display.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "common/utf8.hpp"

using namespace leasehold;
using namespace leasehold::demo;

TEST_CASE("display: wraps text at words and shows its last lines") {
  CHECK(wrap("one two three", 7, 5) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("one two three", 7, 1) == std::vector<std::string>{"three"});
}

TEST_CASE("display: all lines of the columns have the same width") {
  const Records records{{.name = "A", .text = "grün und blau, äöü, äöü"},
                        {.name = "B"},
                        {.name = "C", .text = "Donaudampfschifffahrt"}};

  const auto lines = columns(records, 62, 4);

  REQUIRE(lines.size() == 5);
  for (const auto& line : lines) CHECK(count_characters(line) == count_characters(lines[0]));
  CHECK(lines[0].starts_with("A lease - 0"));
}

TEST_CASE("display: a log has a line per tenant and one per change of lease") {
  std::ostringstream out;
  PlainDisplay display(out);
  runner::TenantRecord record{.name = "B", .leases = {{1, 1}}, .text = "Once upon"};
  display.show({record});
  record.text += " a time";
  display.show({record});
  record.revocations = {{.lease = {1, 1}, .reason = "operator", .after_tokens = 4}};
  record.leases.push_back({2, 1});
  display.finish({record});

  CHECK(out.str() ==
        "B | Once upon\n"
        "B | -- lease 1.1 acquired\n"
        "B |  a time\n"
        "B | -- lease 1.1 revoked (operator) after 4 tokens\n"
        "B | -- lease 2.1 acquired\n");
}

TEST_CASE("display: control characters in a tenant's text are not printed") {
  std::ostringstream out;
  PlainDisplay display(out);
  display.finish({{.name = "A", .text = "\x1b[2Jboo\n"}});

  CHECK(out.str() == "A |  [2Jboo \n");
}
