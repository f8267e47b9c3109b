#include "common/utf8.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

void check_step(std::string_view text, Utf8Kind kind, int size_bytes) {
  const Utf8Step step = next_utf8(text);
  CHECK(step.kind == kind);
  CHECK(step.size_bytes == size_bytes);
}

}  // namespace

TEST_CASE("utf8: whole characters of every length") {
  check_step("a\xff", Utf8Kind::Character, 1);
  check_step("é", Utf8Kind::Character, 2);
  check_step("▁x", Utf8Kind::Character, 3);
  check_step("🦙", Utf8Kind::Character, 4);
}

TEST_CASE("utf8: text that ends inside a character is incomplete, not invalid") {
  check_step("\xc3", Utf8Kind::Incomplete, 1);
  check_step("\xe2\x96", Utf8Kind::Incomplete, 2);
  check_step("\xf0\x9f\xa6", Utf8Kind::Incomplete, 3);
}

TEST_CASE("utf8: overlong forms, surrogates, stray and too high bytes are invalid at once") {
  check_step("\x80", Utf8Kind::Invalid, 1);
  check_step("\xc0\x80", Utf8Kind::Invalid, 1);
  check_step("\xe0\x80\x80", Utf8Kind::Invalid, 1);
  check_step("\xed\xa0\x80", Utf8Kind::Invalid, 1);
  check_step("\xf4\x90\x80\x80", Utf8Kind::Invalid, 1);
  check_step("\xff", Utf8Kind::Invalid, 1);
  check_step("\xe2\x96z", Utf8Kind::Invalid, 2);
  CHECK_FALSE(is_utf8("a\xe2\x96"));
  CHECK(is_utf8("a▁🦙"));
}

TEST_CASE("utf8: text quoted in a message is short and printable") {
  CHECK(printable_excerpt("yarn\n\xe2\x96") == "yarn???");
  CHECK(printable_excerpt(std::string(100, 'x')).size() == 64);
}
