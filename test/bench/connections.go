package bench

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"
)

// connections is how many connections the rows on many connections have.
const connections = 10_000

// manyConnections measures each target with ten thousand connections, over which a schedule
// sends a hundred thousand events per second in batches of the default size. The stand-ins
// are processes of their own.
func (u *Suite) manyConnections(b testing.TB) {
	const perS = 100e3
	lasts := u.scaled(10 * time.Second)
	for _, t := range []struct{ name, url string }{
		{"kafka", "kafka://" + u.startDiscardingKafka(b).addr + "/" + topic},
		{"riemann", "riemann://" + u.startDiscardingRiemann(b).addr},
		{"apm", "apm+http://" + u.startDiscardingAPM(b).addr},
		{"otlp over gRPC", "otlp+grpc://" + u.startDiscardingOTLP(b).second},
	} {
		work := fmt.Sprintf("many connections, %s, open loop at 100 k/s over 10,000", t.name)
		r := u.alternate(b.Context(), work, contestant{carronade, func(ctx context.Context) (sample, error) {
			d, e, err := u.runProgramWatched(ctx, true, work, t.url, "--clients", strconv.Itoa(connections), "--rate", "100k/s", "--for", lasts.String())
			if err != nil {
				return nil, err
			}
			asked := perS * lasts.Seconds()
			return sample{maxRSS: float64(max(e.peak, d.Generator.MaxRSS)), deviation: math.Abs(float64(d.Totals.Sent)-asked) / asked}.trust(d), nil
		}})
		u.addLine(r, maxRSS, atMost(300<<20), bound{}).Worst = true
		u.addLine(r, deviation, atMost(0.001), bound{})
		u.addLine(r, trusted, atLeast(1), bound{}).Worst = true
	}
}
