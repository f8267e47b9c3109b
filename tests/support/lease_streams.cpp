#include "tests/support/lease_streams.hpp"

#include <chrono>
#include <stdexcept>

#include "common/random.hpp"

namespace leasehold::testing {
namespace {

void expect(bool holds, const char* promise) {
  if (!holds) throw std::runtime_error(promise);
}

}  // namespace

LeaseStreams::LeaseStreams(const System& system, const std::string& tenant)
    : broker_(control::Client::connect(system.broker_socket()).value()) {
  const auto acquired = acquire(broker_, tenant);
  lease_ = acquired.lease;
  token_ = acquired.token;
  worker_ = connect_peer(io_, acquired,
                         [this](const std::string& method, const control::Payload& params) {
                           note(method, params.body);
                         });
}

void LeaseStreams::submit(std::uint32_t number, std::uint32_t max_tokens,
                          std::vector<std::int32_t> emitted) {
  begun_[std::to_string(number)] = emitted.size();
  const wire::RequestSubmit ask{.token = token_,
                                .request_id = {std::to_string(number)},
                                .prompt = "Once upon a time",
                                .emitted = std::move(emitted),
                                .sampling = {.temperature = 1.0f, .seed = number},
                                .max_emitted_tokens = max_tokens,
                                .ignore_eos = true};
  worker_->call("request.submit", {ask.to_json(), {}},
                [](const auto& reply) { expect(reply.has_value(), "the request is accepted"); });
}

void LeaseStreams::wait_for_ends(std::size_t count) {
  while (ends.size() < count)
    expect(io_.run_one_for(std::chrono::seconds(60)) > 0, "the worker sends something");
}

void LeaseStreams::note(const std::string& method, const control::Json& body) {
  if (method == wire::TokenEmitted::kMethod) {
    const auto token = wire::TokenEmitted::from_json(body).value();
    auto& all = tokens[token.request.value];
    expect(token.position == begun_[token.request.value] + all.size(),
           "tokens come in order, each once");
    all.push_back(token.token);
  } else if (method == wire::RequestPreempted::kMethod) {
    const auto preempted = wire::RequestPreempted::from_json(body).value();
    expect(preempted.emitted_tokens == tokens[preempted.request.value].size(),
           "a preemption counts the tokens before it");
    expect(preempted.freed_blocks > 0, "a preemption frees blocks");
    ++preemptions;
    if (preempted.swapped_blocks > 0) ++swaps;
  } else if (method == wire::RequestCompleted::kMethod) {
    const auto end = wire::RequestCompleted::from_json(body).value();
    ends[end.request.value] = end.reason;
  }
}

}  // namespace leasehold::testing
