#include "tests/tidy/layers.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

namespace leasehold::tidy {
namespace {

/// The components of ipc/ have users of their own: only device_agent and kernels_cuda use ipc_cuda.
std::string component_of(std::string_view path) {
  if (path.starts_with("ipc/cuda/")) return "ipc_cuda";
  if (path.starts_with("kernels/cuda/")) return "kernels_cuda";
  if (path.starts_with("kernels/model/")) return "kernels_model";
  if (path.starts_with("broker/device_agent/")) return "device_agent";
  if (path.starts_with("ipc/control/")) return "ipc_control";
  if (path.starts_with("ipc/client/")) return "ipc_client";
  if (path.starts_with("ipc/http/")) return "ipc_http";
  if (path.starts_with("ipc/etcd/")) return "ipc_etcd";
  if (path.starts_with("ipc/region/") || path.starts_with("ipc/table/")) return "ipc_mapping";
  if (path.starts_with("ipc/")) return "ipc_segment";
  return std::string(path.substr(0, path.find('/')));
}

const std::map<std::string, std::set<std::string>>& allowed_dependencies() {
  static const std::map<std::string, std::set<std::string>> kBelow{
      {"common", {}},
      {"ipc_segment", {"common"}},
      {"ipc_mapping", {"common", "ipc_segment"}},
      {"ipc_control", {"common", "ipc_segment"}},
      {"ipc_client", {"common", "ipc_segment", "ipc_control"}},
      {"ipc_http", {"common", "ipc_segment", "ipc_control"}},
      {"ipc_etcd", {"common", "ipc_segment", "ipc_control", "ipc_http"}},
      {"ipc_cuda", {"common", "ipc_segment", "ipc_mapping"}},
      {"kernels", {"common", "ipc_segment"}},
      {"kernels_cuda", {"common", "ipc_segment", "ipc_cuda", "kernels"}},
      {"device_agent", {"common", "ipc_segment", "ipc_mapping", "ipc_control", "ipc_cuda"}},
      {"kernels_model", {"common", "ipc_segment", "kernels"}},
      {"worker",
       {"common", "ipc_segment", "ipc_mapping", "ipc_control", "ipc_http", "ipc_cuda", "kernels",
        "kernels_cuda", "kernels_model", "ipc_client"}},
      {"broker", {"common", "ipc_segment", "ipc_mapping", "ipc_control"}},
      {"tools",
       {"common", "ipc_segment", "ipc_mapping", "ipc_control", "ipc_http", "ipc_etcd", "ipc_cuda",
        "kernels", "kernels_cuda", "kernels_model", "ipc_client"}},
  };
  return kBelow;
}

/// Broker, kernels/model and worker have layers of their own: the folders that each folder may
/// include. Folders that are not listed, and the files above them, may include every folder.
const std::map<std::string, std::set<std::string>>& allowed_folders() {
  static const std::map<std::string, std::set<std::string>> kBelow{
      {"broker/books", {}},
      {"broker/decide", {"broker/books"}},
      {"broker/journal", {"broker/books"}},
      {"broker/memory", {"broker/books", "broker/decide"}},
      {"broker/recovery", {"broker/books", "broker/decide"}},
      {"broker/supervise", {"broker/books", "broker/recovery"}},
      {"kernels/model/gguf", {}},
      {"worker/text", {"kernels/model/gguf"}},
      {"worker/model", {"kernels/model", "kernels/model/gguf"}},
      {"worker/kv", {"kernels/model", "worker/text"}},
      {"worker/schedule", {"worker/kv", "worker/text"}},
      {"worker/trace", {}},
      {"worker/metrics", {"worker/kv", "worker/schedule", "worker/text", "worker/trace"}},
      {"worker/engine",
       {"kernels/model", "worker/kv", "worker/model", "worker/schedule", "worker/text"}},
      {"worker/adapter",
       {"kernels/model", "kernels/model/gguf", "worker/engine", "worker/kv", "worker/metrics",
        "worker/model", "worker/schedule"}},
      {"worker/lease", {"kernels/model", "kernels/model/gguf", "worker/engine", "worker/model"}},
      {"worker/batch", {}},
      {"worker/http", {"worker/batch", "worker/text", "worker/trace"}},
  };
  return kBelow;
}

/// "broker/decide" of "broker/decide/core.cpp"; "broker" of "broker/main.cpp"; of kernels/model one
/// folder more, since gguf/ may not include what reads a model out of it.
std::string folder_of(std::string_view path) {
  const auto next = [&](std::size_t after) {
    return after == std::string_view::npos ? after : path.find('/', after + 1);
  };
  const auto first = path.find('/');
  auto end = next(first);
  if (path.starts_with("kernels/model/") && next(end) != std::string_view::npos) end = next(end);
  return std::string(path.substr(0, end == std::string_view::npos ? first : end));
}

bool folder_may_include(std::string_view path, std::string_view included) {
  const std::string from = folder_of(path);
  const std::string to = folder_of(included);
  const auto below = allowed_folders().find(from);
  if (below == allowed_folders().end() || from == to) return true;
  constexpr std::array<std::string_view, 3> kLayered{"broker", "kernels/model", "worker"};
  const auto is_layered = [&](std::string_view prefix) { return to.starts_with(prefix); };
  return std::ranges::none_of(kLayered, is_layered) || below->second.contains(to);
}

bool component_may_include(const std::string& component, const std::string& included) {
  if (component == "tests" || component == included) return true;
  const auto below = allowed_dependencies().find(component);
  return below != allowed_dependencies().end() && below->second.contains(included);
}

}  // namespace

bool may_include(std::string_view path, std::string_view included) {
  return component_may_include(component_of(path), component_of(included)) &&
         folder_may_include(path, included);
}

}  // namespace leasehold::tidy
