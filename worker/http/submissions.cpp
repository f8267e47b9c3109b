#include <algorithm>

#include "common/random.hpp"
#include "worker/http/api_request.hpp"

namespace leasehold::http {

std::vector<wire::RequestSubmit> submissions_of(const ApiRequest& request) {
  std::vector<wire::RequestSubmit> all;
  for (std::size_t i = 0; i < request.n * std::max<std::size_t>(1, request.prompts.size()); ++i) {
    wire::RequestSubmit& submit = all.emplace_back(request.submit);
    submit.sampling.seed += i % request.n;
    if (i > 0) submit.request_id = {mint_request_id()};
    if (request.prompts.empty()) continue;
    const ApiPrompt& prompt = request.prompts[i / request.n];
    submit.prompt = prompt.text;
    submit.prompt_tokens = prompt.tokens;
  }
  return all;
}

}  // namespace leasehold::http
