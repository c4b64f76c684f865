package fleet

import (
	"errors"
	"fmt"
	"slices"

	"carronade/internal/workload"
)

// MaxWeight is the largest weight of an agent.
const MaxWeight = 4096

// Weights returns the weights of agents. One that reads what the others send has none.
func Weights(infos []Info, reader string) []int {
	weights := make([]int, len(infos))
	for i := range infos {
		if infos[i].Name != reader {
			weights[i] = min(max(1, infos[i].Weight), MaxWeight)
		}
	}
	return weights
}

// Clients returns how many clients a workload has on agents with these weights: as many as
// it says, or one for each weight where it says nothing. An agent without a weight has none.
func Clients(w *workload.Workload, weights []int) (int, error) {
	sum, senders := 0, 0
	for _, weight := range weights {
		sum += weight
		if weight > 0 {
			senders++
		}
	}
	if senders == 0 {
		return 0, errors.New("no agent is left that sends")
	}
	n := int(w.Count("clients"))
	switch {
	case w.Given("clients"):
	case !w.Has("clients") && w.Count("concurrency") > 0: // a client for each caller
		n = int(w.Count("concurrency"))
	default:
		n = max(1, n) * sum
	}
	for i := range weights {
		if from, to := portion(n, weights, i); from == to && weights[i] > 0 {
			return 0, fmt.Errorf("%d clients are too few for %d agents: each fires with its own", n, senders)
		}
	}
	if c := int(w.Count("concurrency")); c > 0 && c < senders {
		return 0, fmt.Errorf("a concurrency of %d is too low for %d agents: each needs one caller at least", c, senders)
	}
	return n, nil
}

// portion returns the clients of an agent.
func portion(clients int, weights []int, i int) (from, to int) {
	sum, before := 0, 0
	for k, w := range weights {
		sum += w
		if k < i {
			before += w
		}
	}
	return clients * before / sum, clients * (before + weights[i]) / sum
}

// Check returns why a workload cannot run on several machines, of which one may read what the
// others send; nil if it can.
func Check(w *workload.Workload, reader string) error {
	reads := w.Verify() || w.Op == workload.RoundTrip
	scheduled := false
	if p, err := w.Plan(); err == nil && w.Op != workload.Consume {
		scheduled = p.Schedule != nil
	}
	switch {
	case w.Has("fault") || w.Has("exec"):
		return errors.New("--fault and --exec are for a run of this machine: agents stop no processes and run no commands")
	case w.Groups() > 0:
		return errors.New("--groups and --members are for a run of this machine: one agent cannot yet read for several groups what the others send")
	case w.Has("backlog"):
		return errors.New("--backlog is for a run of this machine: no agent knows how much of what all send waits")
	case reads && !slices.Contains(w.Kind.Ops(), workload.Consume):
		return fmt.Errorf("another machine cannot read the events of %s: a fleet cannot verify them", w.Kind.Name())
	case reads && len(w.Parts()) > 0:
		return errors.New("a fleet cannot verify a workload of several parts")
	case reads && reader == "":
		return errors.New("one agent has to read what the others send: give --fleet-reader NAME")
	case reader != "" && !reads:
		return errors.New("--fleet-reader reads what the others send: it needs --verify or --op roundtrip")
	case w.Op == workload.RoundTrip && !scheduled:
		return errors.New("a round trip on several machines needs --rate: a caller cannot wait for what another machine reads")
	case w.Trace() != "":
		return errors.New("--trace keeps what this program sent: each agent writes its own with carronade agent --traces FOLDER")
	case w.LimitsFaults():
		return errors.New("limits on outages need what this program sent: a fleet takes marks, and has no scores of faults")
	}
	return nil
}
