// Which errors of a host move a text.
#include <array>
#include <catch2/catch.hpp>

#include "tools/gateway/decide/error_outcome.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

constexpr std::array kStages{TextStage::Starting, TextStage::Moving, TextStage::Running};

}  // namespace

TEST_CASE("error outcome: an error of the request is passed on at every stage") {
  for (const Errc code : {Errc::BadRequest, Errc::MalformedMessage, Errc::MessageTooLarge,
                          Errc::PromptTooLong, Errc::PermissionDenied, Errc::QuotaBlocks,
                          Errc::TimedOut, Errc::NumericFault, Errc::RequestCancelled}) {
    CAPTURE(name(code));
    for (const TextStage stage : kStages) CHECK(outcome_of(code, stage) == ErrorOutcome::PassOn);
  }
}

TEST_CASE("error outcome: the end of a lease and a broken host move a text") {
  for (const Errc code :
       {Errc::LeaseRevoked, Errc::LeaseFenced, Errc::StaleGeneration, Errc::Draining,
        Errc::QueueFull, Errc::PoolExhausted, Errc::BrokerLost, Errc::EngineDecodeFailed,
        Errc::WeightsLoading, Errc::MissingWeight, Errc::DeviceFault, Errc::ConnectionLost}) {
    CAPTURE(name(code));
    for (const TextStage stage : kStages) CHECK(outcome_of(code, stage) == ErrorOutcome::Move);
  }
}

TEST_CASE(
    "error outcome: a host that lacks a key is left by a text whose key another one accepted") {
  for (const Errc code : {Errc::BadToken, Errc::UnknownTenant}) {
    CAPTURE(name(code));
    CHECK(outcome_of(code, TextStage::Starting) == ErrorOutcome::PassOn);
    CHECK(outcome_of(code, TextStage::Moving) == ErrorOutcome::Leave);
    CHECK(outcome_of(code, TextStage::Running) == ErrorOutcome::PassOn);
  }
}

TEST_CASE("error outcome: a host that lacks an adapter is left, and a removal ends what runs") {
  CHECK(outcome_of(Errc::UnknownAdapter, TextStage::Starting) == ErrorOutcome::Leave);
  CHECK(outcome_of(Errc::UnknownAdapter, TextStage::Moving) == ErrorOutcome::Leave);
  CHECK(outcome_of(Errc::UnknownAdapter, TextStage::Running) == ErrorOutcome::PassOn);
}

TEST_CASE("error outcome: a tenant's limit is not multiplied by the number of hosts") {
  for (const Errc code : {Errc::QuotaConcurrent, Errc::QuotaTokens, Errc::QuotaRequests,
                          Errc::RebindRateLimited, Errc::RequestIdConflict}) {
    CAPTURE(name(code));
    CHECK(outcome_of(code, TextStage::Starting) == ErrorOutcome::PassOn);
    CHECK(outcome_of(code, TextStage::Moving) == ErrorOutcome::Move);
    CHECK(outcome_of(code, TextStage::Running) == ErrorOutcome::Move);
  }
}

TEST_CASE("error outcome: a status without a known code moves if it may be the host's") {
  for (const int status : {200, 302, 408, 429, 500, 502, 503, 504})
    CHECK(outcome_of_status(status) == ErrorOutcome::Move);
  for (const int status : {400, 401, 403, 404, 409, 413, 422, 499})
    CHECK(outcome_of_status(status) == ErrorOutcome::PassOn);
}
