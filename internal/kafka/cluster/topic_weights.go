package cluster

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/splitmix"
	"carronade/protocol"
)

// topicWeightForms are the values of topic-weights.
const topicWeightForms = "how events are spread over the target's topics: equal; zipf(S), the first gets the most; or a weight for each, such as 3,1,1"

// parseTopicWeights reads the weights of topics; nil: all get the same number of events.
func parseTopicWeights(text string, topics int) ([]float64, error) {
	bad := func(err error, hint string) error {
		return &protocol.Error{Doing: fmt.Sprintf("read the option topic-weights %q", text), Err: err, Hint: hint}
	}
	const forms = "give equal, zipf(1.1), or a number for each topic, such as 3,1,1"
	if text == "" || text == "equal" {
		return nil, nil
	}
	weights := make([]float64, topics)
	if inside, ok := strings.CutPrefix(text, "zipf("); ok && strings.HasSuffix(inside, ")") {
		s, err := strconv.ParseFloat(strings.TrimSuffix(inside, ")"), 64)
		if err != nil || !(s > 0 && s <= 10) {
			return nil, bad(fmt.Errorf("the exponent must be a number above 0, at most 10"), forms)
		}
		for i := range weights {
			weights[i] = math.Pow(float64(i+1), -s)
		}
		return weights, nil
	}
	list := strings.Split(text, ",")
	for i, word := range list {
		w, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || !(w > 0 && w <= 1e9) {
			return nil, bad(fmt.Errorf("%q is not a weight above 0", word), forms)
		}
		if i < topics {
			weights[i] = w
		}
	}
	if len(list) != topics {
		return nil, bad(fmt.Errorf("it has %d weights, and the target %d topics", len(list), topics), forms)
	}
	return weights, nil
}

// A topicChoice chooses topics by their weights.
type topicChoice struct {
	topics  []TopicLogs
	weights []float64 // nil: equal
	sums    []float64 // of the weights up to each topic
}

func newTopicChoice(topics []TopicLogs, weights []float64) *topicChoice {
	t := &topicChoice{topics: topics, weights: weights}
	sum := 0.0
	for i := range topics {
		sum += t.weight(i)
		t.sums = append(t.sums, sum)
	}
	return t
}

func (t *topicChoice) weight(i int) float64 {
	if t.weights == nil {
		return 1
	}
	return t.weights[i]
}

func (t *topicChoice) logs() int {
	last := t.topics[len(t.topics)-1]
	return last.Base + last.Partitions
}

// even reports whether each log gets the same number of events.
func (t *topicChoice) even() bool {
	for i := range t.topics {
		if t.topics[i].Partitions != t.topics[0].Partitions || t.weight(i) != t.weight(0) {
			return false
		}
	}
	return true
}

// random chooses a topic for event n, by a hash of n.
func (t *topicChoice) random(n uint64) int {
	if len(t.topics) == 1 {
		return 0
	}
	at := float64(splitmix.Mix(n+splitmix.Golden)>>11) / (1 << 53) * t.sums[len(t.sums)-1]
	i, _ := slices.BinarySearch(t.sums, at)
	return min(i, len(t.topics)-1)
}

const (
	// mostSequence bounds the events after which the order of topics repeats, unless each topic's first block takes more.
	// A table has 20 bytes for each.
	mostSequence = 1 << 20
	// mostFirst bounds the events of these first blocks: of very many topics, blocks are smaller.
	mostFirst = 1 << 24
)

// sequence returns the streams of the first events, after which they repeat: each topic gets events evenly in time,
// and its streams take turns. Events of a block are of one stream.
func (t *topicChoice) sequence(s *Streams, block int, fixed bool) []int32 {
	block = min(block, max(1, mostFirst/len(t.topics)))
	sum := t.sums[len(t.sums)-1]
	const rounds = 64 // a stream has one block more than another: at most 1/rounds
	want := 0.0
	for i := range t.topics {
		want = max(want, rounds*float64(s.Each*t.used(i, fixed))*sum/t.weight(i))
	}
	want = min(max(want, float64(CycleEvents/block)), float64(mostSequence/block)) // before it is an int: it may be too large for one
	blocks := max(int(want), len(t.topics))
	due := make(dueTopics, len(t.topics))
	first := 0 // index in Used of the topic's first log
	for i := range due {
		due[i] = dueTopic{at: 0.5 / t.weight(i), every: 1 / t.weight(i), first: first, used: t.used(i, fixed)}
		first += due[i].used
	}
	heap.Init(&due)
	seq := make([]int32, 0, blocks*block)
	for range blocks {
		d := &due[0]
		client, log := d.n/d.used%s.Each, d.n%d.used
		for range block {
			seq = append(seq, int32(client*len(s.Used)+d.first+log)) //nolint:gosec // few streams
		}
		d.n++
		d.at += d.every
		heap.Fix(&due, 0)
	}
	return seq
}

// used is how many partitions of a topic are used.
func (t *topicChoice) used(i int, fixed bool) int {
	if fixed {
		return 1
	}
	return t.topics[i].Partitions
}

// A dueTopic is a topic whose next block is due at a time, in a unit of its own.
type dueTopic struct {
	at, every   float64
	n           int // blocks until now
	first, used int // its streams of a client
}

// dueTopics is a heap of topics; the first is due next.
type dueTopics []dueTopic

func (d dueTopics) Len() int { return len(d) }
func (d dueTopics) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].first < d[j].first
}
func (d dueTopics) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dueTopics) Push(any)     { panic("kafka: the number of topics is fixed") }
func (d *dueTopics) Pop() any     { panic("kafka: the number of topics is fixed") }
