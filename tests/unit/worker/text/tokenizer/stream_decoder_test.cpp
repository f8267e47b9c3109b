#include "worker/text/tokenizer/stream_decoder.hpp"

#include <catch2/catch.hpp>

#include "tests/support/gguf_builder.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

Tokenizer tiny_tokenizer() {
  const TemporaryFile file(tiny_llama().bytes());
  return *Tokenizer::from_metadata(*GgufFile::open(file.path()));
}

constexpr TokenId kBosToken = 1, kEosToken = 2, kMarkAbToken = 260, kMarkToken = 265;
constexpr TokenId stream_byte_token(int byte) {
  return 3 + byte;
}

}  // namespace

TEST_CASE("stream decoder: the leading space is removed after BOS and kept in a continuation") {
  const Tokenizer tokenizer = tiny_tokenizer();
  StreamDecoder whole(tokenizer);
  CHECK(whole.push(kBosToken).empty());
  CHECK(whole.push(kMarkAbToken) == "ab");
  CHECK(whole.push(kMarkAbToken) == " ab");
  StreamDecoder continuation(tokenizer);
  CHECK(continuation.push(kMarkAbToken) == " ab");
}

TEST_CASE("stream decoder: only one space is removed") {
  const Tokenizer tokenizer = tiny_tokenizer();
  StreamDecoder decoder(tokenizer);
  decoder.push(kBosToken);
  CHECK(decoder.push(kMarkToken).empty());
  CHECK(decoder.push(kMarkToken) == " ");
}

TEST_CASE("stream decoder: a character appears with its last token") {
  const Tokenizer tokenizer = tiny_tokenizer();
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(stream_byte_token(0xf0)).empty());
  CHECK(decoder.push(stream_byte_token(0x9f)).empty());
  CHECK(decoder.push(stream_byte_token(0xa6)).empty());
  CHECK(decoder.push(stream_byte_token(0x99)) == "🦙");
  CHECK(decoder.finish().empty());
}

TEST_CASE("stream decoder: invalid bytes become U+FFFD") {
  const Tokenizer tokenizer = tiny_tokenizer();
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(stream_byte_token(0xff)) == "\uFFFD");
  CHECK(decoder.push(stream_byte_token(0xe2)).empty());
  CHECK(decoder.push(kMarkAbToken) == "\uFFFD ab");
}

TEST_CASE("stream decoder: an incomplete character at the end becomes one U+FFFD") {
  const Tokenizer tokenizer = tiny_tokenizer();
  StreamDecoder decoder(tokenizer);
  decoder.push(stream_byte_token(0xf0));
  decoder.push(stream_byte_token(0x9f));
  CHECK(decoder.push(kEosToken).empty());
  CHECK(decoder.finish() == "\uFFFD");
  CHECK(decoder.finish().empty());
}
