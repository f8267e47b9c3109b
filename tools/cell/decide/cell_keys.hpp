/// The keys of a cell in etcd, all below "/leasehold/CELL/". Pure.
///
///   config          CellConfig, by the operator
///   hosts/H         HostRecord, by the agent of H; gateways delete it
///   wanted/H        WantedHost, by the operator
///   tenants/T       CellPolicy, by `brokerctl cell`
///   keys/ID         CellKey, by `brokerctl cell`
///   revoked/ID      RevokedKey, by `brokerctl cell`
///   ledger/T        Ledger, by the agents
///   mail/H/T        a revision of tenants/T, by the program that changed T; or kRaisedMail or
///                   kWantedMail, by the agent that wrote the ledger
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/cell/decide/names.hpp"

namespace leasehold::cell {

/// The values of mails about parts. H reads the ledger after each mail; only after this one it may
/// wait a moment.
inline constexpr std::string_view kWantedMail = "wanted";  ///< Others want some of the part of H.
inline constexpr std::string_view kRaisedMail =
    "raised";  ///< The part of H has grown, or may grow.

class CellKeys {
 public:
  explicit CellKeys(const CellName& cell) : root_("/leasehold/" + cell.value + "/") {}

  std::string config() const { return root_ + "config"; }
  std::string host(const HostName& host) const { return root_ + "hosts/" + host.value; }
  std::string wanted(const HostName& host) const { return root_ + "wanted/" + host.value; }
  std::string tenant(const TenantId& tenant) const { return root_ + "tenants/" + tenant.value; }
  std::string key(const ApiKeyId& key) const { return root_ + "keys/" + key.value; }
  std::string revoked(const ApiKeyId& key) const { return root_ + "revoked/" + key.value; }
  std::string ledger(const TenantId& tenant) const { return root_ + "ledger/" + tenant.value; }
  std::string mail(const HostName& host, const TenantId& tenant) const {
    return root_ + "mail/" + host.value + "/" + tenant.value;
  }
  etcd::KeyRange hosts() const { return etcd::KeyRange::prefix(root_ + "hosts/"); }
  etcd::KeyRange tenants() const { return etcd::KeyRange::prefix(root_ + "tenants/"); }
  etcd::KeyRange keys() const { return etcd::KeyRange::prefix(root_ + "keys/"); }
  etcd::KeyRange ledgers() const { return etcd::KeyRange::prefix(root_ + "ledger/"); }
  etcd::KeyRange mails() const { return etcd::KeyRange::prefix(root_ + "mail/"); }
  etcd::KeyRange all() const { return etcd::KeyRange::prefix(root_); }
  /// The revoked keys whose id begins with the same two digits: one of 256.
  etcd::KeyRange revoked_beside(const ApiKeyId& key) const {
    return etcd::KeyRange::prefix(root_ + "revoked/" + key.value.substr(0, 2));
  }
  etcd::KeyRange mail_of(const HostName& host) const {
    return etcd::KeyRange::prefix(root_ + "mail/" + host.value + "/");
  }

  /// The name in a key of `hosts`. Nothing for another key.
  std::optional<HostName> host_in(std::string_view key) const;
  /// The tenant in a key of `tenants`. Nothing for another key.
  std::optional<TenantId> tenant_in(std::string_view key) const;
  /// The id in a key of `keys`. Nothing for another key.
  std::optional<ApiKeyId> api_key_in(std::string_view key) const;
  /// The tenant in a key of `mail_of(host)`. Nothing for another key.
  std::optional<TenantId> tenant_in_mail(const HostName& host, std::string_view key) const;

 private:
  std::string root_;
};

}  // namespace leasehold::cell
