#include "ipc/control/transport/base64.hpp"

#include <catch2/catch.hpp>

#include "ipc/control/messages/embedding_text.hpp"

namespace leasehold::control {

TEST_CASE("base64: every byte survives base64, and what is not base64 is found") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& bytes : {std::string(), std::string("a"), std::string("ab"), all})
    CHECK(from_base64(to_base64(bytes)) == bytes);
  CHECK(to_base64("ab") == "YWI=");
  for (const char* text : {"YWI", "YW=I", "Y", "Y W=", "YWI=YWI="}) CHECK(!from_base64(text));
}

TEST_CASE("base64: an embedding survives, and text that is none is refused") {
  const std::vector<float> embedding{1.0f, -0.5f, 0.0f};
  CHECK(wire::embedding_text(embedding) == "AACAPwAAAL8AAAAA");
  CHECK(wire::embedding_of("AACAPwAAAL8AAAAA") == embedding);
  for (const char* text : {"", "YWI=", "AACAPw", "?"})
    CHECK(wire::embedding_of(text).error().code == Errc::MalformedMessage);
}

}  // namespace leasehold::control
