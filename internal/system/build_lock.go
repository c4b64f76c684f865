package system

import (
	"context"
	"fmt"
	"os"
	"time"

	"carronade/internal/host"
)

// lockInterval is how often to try again to take a lock.
const lockInterval = 100 * time.Millisecond

// lock takes a lock on a file, which it creates, and returns a function that
// releases it. It waits as long as ctx allows.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := waitLock(ctx, f, false); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func waitLock(ctx context.Context, f *os.File, shared bool) error {
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for {
		ok, err := host.TryLock(f, shared)
		if err != nil {
			return fmt.Errorf("lock the cache: %w", err)
		}
		if ok {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for another run that has %s: %w", f.Name(), ctx.Err())
		}
	}
}
