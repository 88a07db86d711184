#pragma once
// published/trainings.csv: workload,platform,epoch,elapsed,loss,val_acc. Loss and accuracy of first and last epochs.

namespace lamina::bench {

extern const char* const published_trainings;

}  // namespace lamina::bench
