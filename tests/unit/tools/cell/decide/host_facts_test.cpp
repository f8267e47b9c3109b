// What a host announces, and which of its workers it drains.
#include <catch2/catch.hpp>

#include "tools/cell/decide/host_facts.hpp"

using namespace leasehold;
using namespace leasehold::cell;

namespace {

wire::WorkerView worker(const std::string& name, const std::string& model,
                        const std::string& drain = "serving") {
  wire::WorkerView view;
  view.worker = name;
  view.state = "ready";
  view.drain = drain;
  view.model = model;
  view.text_identity =
      TextIdentity::parse("sha256:" + std::string(64, model.front()) + "/int8/f16/1").value();
  return view;
}

std::vector<std::string> names(const std::vector<OfferedModel>& models) {
  std::vector<std::string> all;
  for (const OfferedModel& model : models) all.push_back(model.name);
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("host facts: a host announces each name of what its workers serve, once") {
  std::vector<wire::WorkerView> workers{worker("w1", "b"), worker("w2", "b", "asleep"),
                                        worker("w3", "a"), worker("w4", "d", "draining")};
  workers[2].aliases = {"c"};
  CHECK(names(models_of(workers)) == Names{"a", "b", "c"});
  workers[2].out_of_service = "its weights are lost";
  workers[0].state = "lost";
  workers[1].text_identity.reset();
  CHECK(names(models_of(workers)).empty());
}

TEST_CASE("host facts: the head of the audit chain is its number and half of its hash") {
  wire::AuditPage page;
  CHECK(audit_head_of(page).empty());
  page.head_sequence = 17;
  page.head_hash = std::string(32, 'a') + std::string(32, 'b');
  CHECK(audit_head_of(page) == "17:" + std::string(32, 'a'));
}

TEST_CASE("host facts: a host drains the workers that serve, and undrains those that are drained") {
  std::vector<wire::WorkerView> workers{worker("w1", "a"), worker("w2", "a", "drained"),
                                        worker("w3", "a", "draining"),
                                        worker("w4", "a", "replacing"), worker("w5", "a")};
  workers[4].state = "gone";
  CHECK(workers_to_change(workers, true) == Names{"w1"});
  CHECK(workers_to_change(workers, false) == Names{"w2", "w3"});
}
