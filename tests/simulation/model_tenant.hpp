/// A holder of leases: acquires, submits, renews, resizes, repeats calls, disconnects and rebinds.
#pragma once

#include <functional>

#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

class Tenant final : public Process {
 public:
  using FindWorker = std::function<Worker*(const std::string& name)>;

  Tenant(Dependencies deps, std::string name, FindWorker find_worker);

  /// Does one thing that a tenant may do now.
  void act();
  void on_death() override { request_ = nullptr; }
  Connection& link() const { return *link_; }
  const std::string& tenant_name() const { return name_; }
  bool has_lease() const { return lease_.has_value(); }

 private:
  void connect();
  void reconnect();
  void resume_holding();
  bool is_connected() const { return link_->ends[Connection::kClient].open; }
  void acquire();
  void send_acquire();
  void acquired(const std::string& request, const Result<Answer>& answer);
  void replace();
  void submit();
  void handle_token(const Request& request);
  void handle_end(const Request& request);
  void resize_or_leave();
  template <class Sent>
  void notify_broker(Sent message);

  Dependencies deps_;
  Broker* broker_;
  std::string name_;
  FindWorker find_worker_;
  Connection* link_ = nullptr;
  std::optional<LeaseId> lease_;
  std::optional<LeaseId> lost_lease_;  ///< The next tenant rebinds it.
  std::string worker_;
  std::string token_;
  std::optional<wire::LeaseAcquire> asked_;  ///< The newest acquire; it may be repeated.
  bool call_pending_ = false;
  std::map<std::string, LeaseId> granted_;  ///< By request id: the same id returns the same lease.
  const Request* request_ = nullptr;
  Connection* stream_ = nullptr;
};

}  // namespace leasehold::simulation
