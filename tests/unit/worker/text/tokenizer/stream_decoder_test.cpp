#include "worker/text/tokenizer/stream_decoder.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"

using namespace leasehold;
using namespace leasehold::testing;

TEST_CASE("stream decoder: the leading space is removed after BOS and kept in a continuation") {
  const Tokenizer tokenizer = tokenizer_of(tiny_llama()).value();
  StreamDecoder whole(tokenizer);
  CHECK(whole.push(kBos).empty());
  CHECK(whole.push(kMarkAb) == "ab");
  CHECK(whole.push(kMarkAb) == " ab");
  StreamDecoder continuation(tokenizer);
  CHECK(continuation.push(kMarkAb) == " ab");
}

TEST_CASE("stream decoder: only one space is removed") {
  const Tokenizer tokenizer = tokenizer_of(tiny_llama()).value();
  StreamDecoder decoder(tokenizer);
  decoder.push(kBos);
  CHECK(decoder.push(kMark).empty());
  CHECK(decoder.push(kMark) == " ");
}

TEST_CASE("stream decoder: a character appears with its last token") {
  const Tokenizer tokenizer = tokenizer_of(tiny_llama()).value();
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(byte_token(0xf0)).empty());
  CHECK(decoder.push(byte_token(0x9f)).empty());
  CHECK(decoder.push(byte_token(0xa6)).empty());
  CHECK(decoder.push(byte_token(0x99)) == "🦙");
  CHECK(decoder.finish().empty());
}

TEST_CASE("stream decoder: invalid bytes become U+FFFD") {
  const Tokenizer tokenizer = tokenizer_of(tiny_llama()).value();
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(byte_token(0xff)) == "\uFFFD");
  CHECK(decoder.push(byte_token(0xe2)).empty());
  CHECK(decoder.push(kMarkAb) == "\uFFFD ab");
}

TEST_CASE("stream decoder: an incomplete character at the end becomes one U+FFFD") {
  const Tokenizer tokenizer = tokenizer_of(tiny_llama()).value();
  StreamDecoder decoder(tokenizer);
  decoder.push(byte_token(0xf0));
  decoder.push(byte_token(0x9f));
  CHECK(decoder.push(kEos).empty());
  CHECK(decoder.finish() == "\uFFFD");
  CHECK(decoder.finish().empty());
}
