#pragma once
// How long the rest of a sweep will take, by the work that is done and the work that is planned.

#include <map>
#include <string>

namespace lamina::bench {

/// The work of points, by name, in floating-point operations. The rate of the points that were measured holds for those
/// that were not.
class TimeLeft {
 public:
  /// A point to be measured: `work` of all its passes, of which one takes `work / passes`. Those whose pass would take
  /// longer than `longest_pass` by the rate so far count as nothing, since they will be left out.
  void plan(const std::string& point, double work, double passes);
  void done(const std::string& point, double seconds);  ///< measured, or failed, in so many seconds
  void drop(const std::string& point);                  ///< it is in the file, or is left out

  /// 0: nothing is left, or nothing was measured yet.
  double seconds(double longest_pass) const;

 private:
  struct Point {
    double work, passes;
  };
  std::map<std::string, Point> planned_;
  double done_work_ = 0, done_seconds_ = 0;
};

}  // namespace lamina::bench
