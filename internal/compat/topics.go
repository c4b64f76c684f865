package compat

import "carronade/target/kafka/admin"

// A TopicLoad is a load of operations on topics, as in `carronade topics`. Its target comes from the
// workload beside it.
type TopicLoad = admin.Work

// A TopicDone is one answered operation.
type TopicDone = admin.Done

// A TopicResult is the result of a TopicLoad.
type TopicResult = admin.Result
