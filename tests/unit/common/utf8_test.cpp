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

TEST_CASE("utf8: a whole character is recognized at every length") {
  check_step("a\xff", Utf8Kind::Character, 1);
  check_step("é", Utf8Kind::Character, 2);
  check_step("▁x", Utf8Kind::Character, 3);
  check_step("🦙", Utf8Kind::Character, 4);
}

TEST_CASE("utf8: a text that ends inside a character is incomplete") {
  check_step("\xc3", Utf8Kind::Incomplete, 1);
  check_step("\xe2\x96", Utf8Kind::Incomplete, 2);
  check_step("\xf0\x9f\xa6", Utf8Kind::Incomplete, 3);
}

TEST_CASE("utf8: overlong forms, surrogates, stray and too high bytes are invalid") {
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

TEST_CASE("utf8: an excerpt for a message is short and printable") {
  CHECK(printable_excerpt("yarn\n\xe2\x96") == "yarn???");
  CHECK(printable_excerpt(std::string(100, 'x')).size() == 64);
}

TEST_CASE("utf8: every code point survives encoding and decoding") {
  for (std::uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (!is_scalar_value(code_point)) continue;
    std::string text;
    append_utf8(text, code_point);
    std::string_view rest = text;
    const bool same = next_utf8(text).size_bytes == text.size() &&
                      code_point_of(text) == code_point && take_code_point(rest) == code_point;
    if (!same || !rest.empty()) FAIL("code point " << code_point);
  }
}

TEST_CASE("utf8: every prefix of a character is incomplete") {
  for (std::uint32_t code_point = 0x80; code_point <= 0x10FFFF; code_point += 0x3F) {
    if (!is_scalar_value(code_point)) continue;
    std::string text;
    append_utf8(text, code_point);
    for (std::size_t size = 1; size < text.size(); ++size) {
      const Utf8Step step = next_utf8(std::string_view(text).substr(0, size));
      if (step.kind != Utf8Kind::Incomplete || step.size_bytes != size)
        FAIL("code point " << code_point << ", " << size << " bytes");
    }
  }
}

TEST_CASE("utf8: NFC composes and orders marks and copies bytes that are not UTF-8") {
  CHECK(to_nfc("plain") == "plain");
  CHECK(to_nfc("e\u0301") == "é");
  CHECK(to_nfc("a\u0301\u0323") == "ạ\u0301");
  CHECK(to_nfc("\u212b\u1112\u1161\u11ab") == "Å한");
  CHECK(to_nfc("\xff\u0065\u0301\xc3") == "\xffé\xc3");
  CHECK(to_nfc("\u0958") == "\u0915\u093c");  // excluded from composition
}

TEST_CASE("utf8: NFC of a long run of marks does not take quadratic time") {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += "\u0301\u0323";
  const std::string nfc = to_nfc(text);
  CHECK(nfc.starts_with("ạ\u0323"));
  CHECK(nfc.ends_with("\u0301"));
}

TEST_CASE("utf8: simple case mappings, and the characters that have none") {
  CHECK(to_upper('a') == 'A');
  CHECK(to_lower(0xC9) == 0xE9);
  CHECK(to_title(0x1C6) == 0x1C5);
  for (const std::uint32_t special : {0xDFu, 0x130u, 0x3A3u, 0xFB00u})
    CHECK(has_special_case(special));
  CHECK_FALSE(has_special_case('s'));
}
