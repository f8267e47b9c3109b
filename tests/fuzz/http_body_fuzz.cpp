// Bodies of the HTTP server, given to every path that reads one. Checks that a refusal has a
// reason, that what is accepted is also accepted from a tenant's socket, and that tokens become a
// text that can be tokenized again.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/fuzz/input.hpp"
#include "tests/support/tiny_tokenizer.hpp"
#include "worker/http/api/api_request.hpp"
#include "worker/http/api/tokenize_api.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

void check_submission(wire::RequestSubmit submit) {
  const int prompts =
      submit.prompt.has_value() + submit.prompt_tokens.has_value() + submit.messages.has_value();
  fuzz::check(prompts == 1);
  submit.token = "t";  // the server adds it
  fuzz::check(wire::RequestSubmit::from_json(submit.to_json()).has_value());
}

void check_request(Api api, std::string_view body) {
  const ApiModel model{.name = "m", .max_context = 256};
  const auto request = parse_api_request(api, body, model, {.may_continue = true});
  if (!request) return fuzz::check(!request.error().error.detail.empty());
  fuzz::check(choices_of(*request) <= ApiRequest::kMaxChoices);
  for (std::size_t i = 0; i < choices_of(*request); ++i)
    check_submission(submission_of(*request, i));
}

/// The document of an answer, which is an error exactly when its status says so.
nlohmann::json document_of(const Answer& answer) {
  nlohmann::json document = nlohmann::json::parse(answer.body, nullptr, false);
  fuzz::check(answer.status == 200 || answer.status == 400 || answer.status == 404 ||
              answer.status == 413);
  fuzz::check(document.is_object() && document.contains("error") == (answer.status != 200));
  return document;
}

void check_tokenizer(std::string_view body) {
  static const Tokenizer tokenizer = testing::tiny_tokenizer();
  static const EncodeChat encode_chat = [](const auto&...) { return std::vector{1, 2}; };
  const nlohmann::json tokens =
      document_of(tokenize(body, tokenizer, {.max_context = 256}, encode_chat));
  if (tokens.contains("tokens"))
    fuzz::check(document_of(detokenize(tokens.dump(), tokenizer, {})).contains("prompt"));
  const nlohmann::json text = document_of(detokenize(body, tokenizer, {}));
  if (text.contains("prompt"))
    fuzz::check(document_of(tokenize(text.dump(), tokenizer, {}, encode_chat)).contains("tokens"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Api api : {Api::Completions, Api::Chat, Api::Responses, Api::Messages})
    check_request(api, body);
  check_tokenizer(body);
  return 0;
}
