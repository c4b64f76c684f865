package dropin

import "carronade/internal/kafka/cluster"

// A TopicLoad is a load of operations on topics, as in `carronade topics`. Its target comes from the
// workload next to it.
type TopicLoad = cluster.TopicLoad

// A TopicDone is one answered operation.
type TopicDone = cluster.TopicDone

// A TopicResult is the result of a TopicLoad.
type TopicResult = cluster.TopicResult
