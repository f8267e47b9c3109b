#include "ipc/control/tokens/text_identity.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using Catch::Matchers::Contains;

namespace {

const TextIdentity kIdentity{
    .content = std::string(64, 'a'), .arithmetic = "int8", .kv_type = "q8_0", .version = 7};

bool matches(const std::string& model, const char* announced, const TextIdentity* identity) {
  return ModelName::parse(model).value().matches(announced, identity);
}

}  // namespace

TEST_CASE("text identity: it is one text that is read back, and nothing else is") {
  const std::string text = to_string(kIdentity);
  CHECK(text == "sha256:" + std::string(64, 'a') + "/int8/q8_0/7");
  CHECK(TextIdentity::parse(text).value() == kIdentity);
  TextIdentity replaced = kIdentity;
  replaced.chat_template = "0123456789abcdef";
  CHECK(to_string(replaced) == text + "/0123456789abcdef");
  CHECK(TextIdentity::parse(to_string(replaced)).value() == replaced);
  const std::string content = "sha256:" + std::string(64, 'a');
  for (const std::string& wrong :
       {std::string(), content, content + "/int8/f16", content + "/int8/f16/0",
        content + "/int8/f16/-1", content + "/int8/f16/x", content + "/int8/f16/1/", "/" + text,
        content + "//f16/1", content + "/INT8/f16/1", std::string("sha256:aaaa/int8/f16/1"),
        "md5:" + std::string(64, 'a') + "/int8/f16/1", "sha256:" + std::string(64, 'A') + "/i/f/1",
        content + "/int8/f16/99999999999", text + "/0123456789abcde", text + "/0123456789abcdeX",
        text + "/0123456789abcdef/0"})
    CHECK_FALSE(TextIdentity::parse(wrong));
}

TEST_CASE("text identity: the difference names each part that differs, with both values") {
  CHECK(difference(kIdentity, kIdentity).empty());
  TextIdentity other = kIdentity;
  other.arithmetic = "f32";
  CHECK(difference(kIdentity, other) == "the arithmetic is f32 and not int8");
  other.content = std::string(64, 'b');
  other.kv_type = "f16";
  other.version = 8;
  other.chat_template = "0123456789abcdef";
  const std::string all = difference(kIdentity, other);
  CHECK_THAT(all,
             Contains("the content of the model is sha256:bbbbbbbbbbbb and not sha256:aaaaaa"));
  CHECK_THAT(all, Contains("the KV cache is f16 and not q8_0"));
  CHECK_THAT(all, Contains("the version of the computation is 8 and not 7"));
  CHECK_THAT(all, Contains("the chat template is 0123456789abcdef and not the model's own"));
}

TEST_CASE("model name: it is the announced name, or the first digits of the content") {
  CHECK(matches("tiny", "tiny", nullptr));
  CHECK_FALSE(matches("tiny", "Tiny", &kIdentity));
  CHECK(matches("sha256:aaaaaaaa", "tiny", &kIdentity));
  CHECK(matches(content_name(kIdentity), "tiny", &kIdentity));
  CHECK_FALSE(matches("sha256:aaaaaaab", "tiny", &kIdentity));
  CHECK_FALSE(matches("sha256:aaaaaaaa", "tiny", nullptr));
  for (const std::string& wrong : {std::string(), std::string(257, 'm'), std::string("two\nlines"),
                                   std::string("sha256:aaaaaaa"), std::string("sha256:AAAAAAAA"),
                                   "sha256:" + std::string(65, 'a')})
    CHECK_FALSE(ModelName::parse(wrong));
}
