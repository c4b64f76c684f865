package bench

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

// An openLoopRow is a run with a schedule at a rate that this machine reaches together
// with the stand-in. Clean runs in make conformance are at half of these rates or less.
type openLoopRow struct {
	work  string
	perS  float64
	delay float64 // bound of the send delay's median, in us
	share float64 // bound of the CPU, of one core
	aim   bound   // of the CPU
}

// openLoop measures whether all is sent, how punctually, and at what cost.
func (u *Suite) openLoop(b testing.TB, p openLoopRow, args ...string) {
	lasts := u.scaled(10 * time.Second)
	given := append(args, "--for", lasts.String())
	r := u.alternate(b.Context(), p.work, contestant{carronade, func(ctx context.Context) (sample, error) {
		d, e, err := u.runProgram(ctx, p.work+", carronade", given...)
		if err != nil {
			return nil, err
		}
		if d.SendDelay == nil {
			return nil, errors.New("the report has no send delay")
		}
		asked := p.perS * lasts.Seconds()
		return sample{
			deviation:    math.Abs(float64(d.Totals.Sent)-asked) / asked,
			sendDelayP50: d.SendDelay.P50,
			cpuShare:     e.cpu.Seconds() / d.Totals.ElapsedS,
		}, nil
	}})
	u.addLine(r, deviation, atMost(0.001), bound{})
	u.addLine(r, sendDelayP50, atMost(p.delay), bound{})
	u.addLine(r, cpuShare, atMost(p.share), p.aim)
}
