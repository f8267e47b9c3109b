// Bodies of /v1/embeddings: what is read, what is refused with which field, and the answer.
#include "worker/http/api/embeddings.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ipc/control/messages/embedding_text.hpp"

/// In a namespace of its own, because the tests of bodies have helpers of the same names.
namespace leasehold::http::embeddings_test {

using Json = nlohmann::json;

namespace {

const ApiModel kModel{
    .name = "tiny", .max_context = 256, .n_vocab = 300, .embedding_width = 1u << 14};

Read<EmbeddingsRequest> parse(Json body) {
  return parse_embeddings_request(body.dump(), kModel, {.created_unix_s = 7});
}

ApiError refused(Json body) {
  const auto request = parse(std::move(body));
  REQUIRE_FALSE(request.has_value());
  return request.error();
}

/// The body with one more field.
std::string refused_field(const char* field, Json value) {
  Json body{{"input", "a"}};
  body[field] = std::move(value);
  return refused(std::move(body)).param;
}

}  // namespace

TEST_CASE("http embeddings: an input is a text or tokens, and there may be several") {
  const auto text = parse({{"input", "Once"}, {"model", "tiny"}, {"rid", "r"}, {"user", "u"}});
  REQUIRE(text.has_value());
  CHECK(text->inputs.size() == 1);
  CHECK_FALSE(text->are_several);
  const wire::RequestSubmit submit = submission_of(*text, 0);
  CHECK(submit.prompt == "Once");
  CHECK(submit.request_id.value == "r");
  CHECK(submit.max_emitted_tokens == 0);
  CHECK(submit.embedding == wire::Embedding{});
  CHECK(wire::RequestSubmit::from_json(submit.to_json()).error().detail.contains("token"));

  const auto tokens = parse({{"input", {3, 4}}});
  REQUIRE(tokens.has_value());
  CHECK(submission_of(*tokens, 0).prompt_tokens == std::vector<std::int32_t>{3, 4});
  const auto several = parse({{"input", {"a", Json::array({5}), "b"}},
                              {"encoding_format", "base64"},
                              {"dimensions", 8},
                              {"pooling", "mean"},
                              {"parse_special", true}});
  REQUIRE(several.has_value());
  CHECK(several->are_several);
  CHECK(several->as_base64);
  CHECK(several->submit.parse_special);
  CHECK(several->submit.embedding == wire::Embedding{.pooling = "mean", .dimensions = 8});
  CHECK(submission_of(*several, 1).prompt_tokens == std::vector<std::int32_t>{5});
  CHECK(submission_of(*several, 2).prompt == "b");
  CHECK(submission_of(*several, 0).request_id == several->submit.request_id);
  CHECK(submission_of(*several, 2).request_id != several->submit.request_id);
}

TEST_CASE("http embeddings: a refusal names the field") {
  CHECK(refused(Json::object()).param == "input");
  CHECK(refused({{"input", Json::array()}}).param == "input");
  CHECK(refused({{"input", ""}}).param == "input");
  CHECK(refused({{"input", 7}}).param == "input");
  CHECK(refused({{"input", {"a", ""}}}).param == "input/1");
  CHECK(refused({{"input", {"a", nullptr}}}).param == "input/1");
  CHECK(refused({{"input", {"a", Json::array()}}}).param == "input/1");
  CHECK(refused({{"input", {1, 300}}}).param == "input/1");
  CHECK(refused({{"input", {Json::array({1}), Json::array({-1})}}}).param == "input/1/0");
  CHECK(refused({{"input", Json(2049, "a")}}).error.detail.contains("2049"));
  CHECK(refused({{"input", Json(129, "a")}}).error.detail.contains("128 vectors of 16384"));
  CHECK(parse({{"input", Json(129, "a")}, {"dimensions", 100}}).has_value());
  CHECK(refused_field("model", "gpt") == "model");
  CHECK(refused_field("encoding_format", "int8") == "encoding_format");
  CHECK(refused_field("dimensions", 0) == "dimensions");
  CHECK(refused_field("dimensions", "8") == "dimensions");
  CHECK(refused_field("pooling", "cls") == "pooling");
  CHECK(refused_field("stream", true) == "stream");
  CHECK(refused_field("normalize", false) == "normalize");
  CHECK(refused_field("truncate_prompt_tokens", 5) == "truncate_prompt_tokens");
  CHECK(refused_field("messages", Json::array()) == "messages");
  CHECK(refused_field("rid", "a/b") == "rid");
  CHECK_FALSE(parse_embeddings_request("[]", kModel).has_value());
  CHECK_FALSE(parse_embeddings_request("{", kModel).has_value());
}

TEST_CASE("http embeddings: the answer has the same vectors as numbers and as base64") {
  const std::vector<std::vector<float>> vectors{{0.1f, -1e-30f}, {1.0f, 0.25f}};
  std::vector<std::string> texts;
  for (const auto& vector : vectors) texts.push_back(wire::embedding_text(vector));
  auto request = parse({{"input", {"a", "b"}}, {"rid", "r"}}).value();
  const UsageCount usage{.prompt_tokens = 5, .completion_tokens = 0};
  const Json answer = Json::parse(embeddings_answer(request, texts, usage).value());
  CHECK(answer["object"] == "list");
  CHECK(answer["id"] == "embd-r");
  CHECK(answer["created"] == 7);
  CHECK(answer["model"] == "tiny");
  CHECK(answer["usage"] == Json{{"prompt_tokens", 5}, {"total_tokens", 5}});
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    CHECK(answer["data"][i]["object"] == "embedding");
    CHECK(answer["data"][i]["index"] == i);
    CHECK(answer["data"][i]["embedding"].get<std::vector<float>>() == vectors[i]);
    CHECK(wire::embedding_of(texts[i]).value() == vectors[i]);
  }
  request.as_base64 = true;
  const Json base64 = Json::parse(embeddings_answer(request, texts, usage).value());
  CHECK(base64["data"][1]["embedding"] == "AACAPwAAgD4=");
  texts[0] = "AACA";  // three bytes
  CHECK(embeddings_answer(request, texts, usage).error().code == Errc::MalformedMessage);
}

TEST_CASE("http embeddings: a worker's refusal names the input or the field") {
  const auto one = parse({{"input", "a"}}).value();
  const auto several = parse({{"input", {"a", "b"}}}).value();
  const Error too_long{Errc::PromptTooLong, "the prompt has 300 tokens"};
  CHECK(param_of(one, 0, too_long) == "input");
  CHECK(param_of(several, 1, too_long) == "input/1");
  CHECK(param_of(several, 1, {Errc::BadRequest, "dimensions is 9, and …"}) == "dimensions");
  CHECK(param_of(several, 1, {Errc::BadRequest, "pooling: the model's file …"}) == "pooling");
  CHECK(param_of(several, 1, {Errc::QueueFull, "…"}).empty());
}

}  // namespace leasehold::http::embeddings_test
