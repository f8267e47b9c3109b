// Texts under adapters: which host has the version that a text began under.
#include <set>

#include "tests/unit/tools/gateway/decide/gateway_case.hpp"

using namespace leasehold;
using namespace leasehold::gateway;
using namespace leasehold::gateway::testing;

namespace {

const std::string kVersion(64, 'a');
const std::string kOtherVersion(64, 'b');

std::string adapter_mark(std::uint32_t choice, const std::string& digest) {
  return fmt::format(": a {} {}\n\n", choice, digest);
}

}  // namespace

TEST_CASE("text: the next host is given the adapter version of each choice with tokens") {
  ContinuationTerms terms{.model = "m"};
  terms.limits.choices = 2;
  GatewayCase gateway(terms);
  gateway.bytes(gateway.begin(), adapter_mark(0, kVersion) + adapter_mark(1, kVersion));
  gateway.bytes(gateway.opened.attempt, group(0, 0, 5));
  gateway.on(lost(gateway.opened.attempt));
  CHECK(gateway.opened.emitted == EmittedTokens{{5}, {}});
  CHECK(gateway.opened.adapters == std::vector<std::string>{kVersion, ""});
  // A choice without tokens may begin under another version; one with tokens goes on under its own.
  const AttemptId second = gateway.opened.attempt;
  gateway.accept(second);
  gateway.bytes(second, adapter_mark(1, kOtherVersion) + group(1, 0, 8));
  CHECK(gateway.client == "data: 5\n\ndata: 8\n\n");
  gateway.bytes(second, adapter_mark(0, kOtherVersion) + group(0, 1, 6));
  CHECK(gateway.only<OpenHost>().cause == MoveCause::OtherIdentity);
  CHECK(gateway.opened.adapters == std::vector<std::string>{kVersion, kOtherVersion});
  CHECK(gateway.client == "data: 5\n\ndata: 8\n\n");
}

TEST_CASE("text: a host whose adapter is another version is left for one that has the text's") {
  GatewayCase gateway;
  gateway.bytes(gateway.begin(), adapter_mark(0, kVersion) + group(0, 0, 5));
  gateway.on(lost(gateway.opened.attempt));
  const OpenHost second = gateway.opened;
  gateway.accept(second.attempt);
  gateway.bytes(second.attempt, ": b\n\ndata: no\n\n: x UnknownAdapter 0\n\n");
  CHECK(gateway.only<OpenHost>().host != second.host);
  gateway.accept(gateway.opened.attempt);
  gateway.bytes(gateway.opened.attempt,
                adapter_mark(0, kVersion) + group(0, 1, 6) + ": x UnknownAdapter 0\n\n");
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\n");
  CHECK(gateway.only<FailRequest>().error.code == Errc::UnknownAdapter);  // removed meanwhile
}

TEST_CASE("text: a name that a host does not know is asked of the next one, once each") {
  GatewayCase gateway;
  const Error unknown{Errc::UnknownAdapter, "no model 'tuned'"};
  gateway.on(RequestArrived{});
  std::set<HostId> asked{gateway.opened.host};
  for (int i = 0; i < 2; ++i) {
    gateway.on(HostRefused{gateway.opened.attempt, 404, unknown});
    asked.insert(gateway.only<OpenHost>().host);
  }
  CHECK(asked.size() == 3);
  gateway.on(HostRefused{gateway.opened.attempt, 404, unknown});
  CHECK(gateway.only<PassAnswer>().attempt == gateway.opened.attempt);
}
