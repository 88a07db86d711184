// An optimiser's update of all parameters of a plan.

#include "kernels/update.h"

#include "common.h"
#include "lib/backends/update_numbers.h"

namespace lamina::LAMINA_CUDA_SPACE {

void run_update(const Update& u, Machine& machine) {
  with_type(u.dtype, [&]<class T>() {
    try {
      update<T>(machine.stream(), rule_of<UpdateRule>(u), numbers_of<UpdateNumbers>(u), row_of<UpdateRow<T>, T>(u));
    } catch (const LaunchError& error) {
      throw DeviceError(std::string(Machine::backend_name()) + ": " + error.what());
    }
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
