package conn

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"carronade/protocol"
)

// Explain adds what was tried and a hint to an error of connecting, unless it has them.
func Explain(doing string, err error, hint func(error) string) error {
	if _, ok := errors.AsType[*protocol.Error](err); ok && !IsNotAllowed(err) {
		return err
	}
	return &protocol.Error{Doing: doing, Err: err, Hint: hint(err)}
}

// InspectAll inspects the servers of a target, HOST:PORT, all at once. kind is what they should
// answer as, such as "a Riemann server", and users what is spread over them, such as "clients". An
// address that fails is a finding; if all fail, the error of the first one is returned. explain is
// given what inspect returned, and returns a *protocol.Error.
func InspectAll(ctx context.Context, addrs []string, kind, users string, inspect func(ctx context.Context, i int) ([]protocol.Finding, error), explain func(i int, err error) error) (out []protocol.Finding, err error) {
	var (
		wg       sync.WaitGroup
		findings = make([][]protocol.Finding, len(addrs))
		errs     = make([]error, len(addrs))
	)
	for i := range addrs {
		wg.Go(func() { findings[i], errs[i] = inspect(ctx, i) })
	}
	wg.Wait()
	failed := 0
	for i, err := range errs {
		if err == nil {
			out = append(out, findings[i]...)
			continue
		}
		failed++
		e, _ := errors.AsType[*protocol.Error](explain(i, err))
		out = append(out, protocol.Finding{
			Check: "address " + addrs[i], Level: protocol.LevelError,
			Found:  fmt.Sprintf("%s does not answer as %s: %v", addrs[i], kind, e.Err),
			Effect: "a run fails when it starts: " + users + " are spread over all addresses", Fix: e.Hint,
		})
	}
	if failed == len(addrs) {
		return nil, explain(0, errs[0])
	}
	return out, nil
}
