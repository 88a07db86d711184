#pragma once
// The flags of `train`.

#include "bench/options/flags.h"
#include "train.h"

namespace lamina::bench {

void add_train_flags(CLI::App&, TrainOptions&);
Differs training_differs(const TrainOptions&);                 ///< from the defaults, for keys
std::vector<std::string> training_words(const TrainOptions&);  ///< the flags that train the same again

}  // namespace lamina::bench
