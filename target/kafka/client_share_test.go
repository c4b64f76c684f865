package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fromBeginning has a share group begin at the beginning: it is the group's own
// setting, and no client's.
func fromBeginning(t *testing.T, group string, opts ...kgo.Opt) {
	t.Helper()
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	set := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	set.Name, set.Value = "share.auto.offset.reset", kmsg.StringPtr("earliest")
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName, of.Configs = kmsg.ConfigResourceTypeGroupConfig, group, append(of.Configs, set)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, of)
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			t.Fatal(err)
		}
	}
}

// Members of a share group get each record once between them, more members than
// there are partitions too, and what they got is accepted when they leave.
func TestConsumeShareGroup(t *testing.T) {
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	put(t, c, records(3000, 2, sized(20)))
	fromBeginning(t, "s", kgo.SeedBrokers(c.ListenAddrs()...))
	src := source(t, c, map[string][]string{"engine": {engineClient}, "share-group": {"s"}, "clients": {"3"}})
	got := drain(t, src, func(r *read) bool { return r.events >= 3000 })
	if got.events != 3000 || got.per[0]+got.per[1] != 3000 {
		t.Errorf("got %d events, want 3000 once each", got.events)
	}
	facts := src.(*clientSource).facts()["share_group"].(map[string]any)
	var events, bytes uint64
	for i, n := range facts["member_events"].([]uint64) {
		events += n
		bytes += facts["member_bytes"].([]uint64)[i]
	}
	if events != 3000 || bytes != 60_000 || len(facts["member_events"].([]uint64)) != 3 {
		t.Errorf("facts are %v", facts)
	}
	for log, n := range src.Behind() {
		if n != -1 {
			t.Errorf("partition %d is %d behind, of which nobody is told", log, n)
		}
	}
	if src.Rebalancing() != 0 {
		t.Errorf("%v without an assignment", src.Rebalancing())
	}
	// Only what came since is delivered.
	put(t, c, records(40, 2, sized(20)))
	again := source(t, c, map[string][]string{"engine": {engineClient}, "share-group": {"s"}})
	if got := drain(t, again, func(r *read) bool { return r.events >= 40 }); got.events != 40 {
		t.Errorf("got %d events, want the 40 new ones", got.events)
	}
}
