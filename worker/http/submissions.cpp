#include <algorithm>

#include "common/random.hpp"
#include "worker/http/api/api_request.hpp"

namespace leasehold::http {

std::size_t choices_of(const ApiRequest& request) {
  return request.n * std::max<std::size_t>(1, request.prompts.size());
}

wire::RequestSubmit submission_of(const ApiRequest& request, std::size_t choice) {
  wire::RequestSubmit submit = request.submit;
  submit.sampling.seed += choice % request.n;
  if (choice > 0) submit.request_id = {mint_request_id()};
  if (request.prompts.empty()) return submit;
  const ApiPrompt& prompt = request.prompts[choice / request.n];
  submit.prompt = prompt.text;
  submit.prompt_tokens = prompt.tokens;
  return submit;
}

}  // namespace leasehold::http
