/// Runs the verbs of `adapters`.
#pragma once

#include <vector>

#include "tools/brokerctl/changes/printed.hpp"
#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

cli::Table adapters_table(const std::vector<wire::AdapterView>& adapters);

/// Errors of each: those of the call.
Result<Printed> make_change(const wire::AdapterAdd& add, const Dependencies& dependencies);
Result<Printed> make_change(const wire::AdapterRemove& remove, const Dependencies& dependencies);
/// Returns when the worker has loaded the adapter.
Result<Printed> make_change(const wire::AdapterLoad& load, const Dependencies& dependencies);
Result<Printed> make_change(const wire::AdapterUnload& unload, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
