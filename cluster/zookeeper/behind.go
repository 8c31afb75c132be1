package zookeeper

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
)

// Reports is who tells brokers' load reports. *admin.Client and *Client are two.
type Reports interface {
	LoadReport(ctx context.Context, broker string) (admin.LoadReport, error)
}

// Behind gives the reports of first, which is the fresher source, and those in ZooKeeper where first fails: it may take half of
// the caller's time. When neither has a report the error names both; it is of the kinds of both. What the caller ended itself
// is not asked for again.
func (c *Client) Behind(first Reports) Reports {
	return &behind{first: first, c: c, from: map[string]bool{}}
}

type behind struct {
	first Reports
	c     *Client

	mu   sync.Mutex
	from map[string]bool // brokers whose report came from ZooKeeper last
}

func (b *behind) LoadReport(ctx context.Context, broker string) (admin.LoadReport, error) {
	half, cancel := ctx, func() {}
	if deadline, ok := ctx.Deadline(); ok {
		half, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	report, err := b.first.LoadReport(half, broker)
	cancel()
	if err == nil {
		b.note(ctx, broker, false, nil)
		return report, nil
	}
	if ctx.Err() != nil {
		return report, err
	}
	report, second := b.c.LoadReport(ctx, broker)
	if second != nil {
		return admin.LoadReport{}, fmt.Errorf("%w; %w", err, second)
	}
	b.note(ctx, broker, true, err)
	return report, nil
}

// note logs when the source of a broker's reports becomes another one.
func (b *behind) note(ctx context.Context, broker string, fromZooKeeper bool, why error) {
	b.mu.Lock()
	changed := b.from[broker] != fromZooKeeper
	if fromZooKeeper {
		b.from[broker] = true
	} else {
		delete(b.from, broker)
	}
	b.mu.Unlock()
	switch {
	case !changed:
	case fromZooKeeper:
		b.c.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the load report of a broker is read from ZooKeeper", slog.String("broker", broker), slog.Any("why", why))
	default:
		b.c.options.Logger.LogAttrs(ctx, slog.LevelInfo, "the load report of a broker is read from itself again", slog.String("broker", broker))
	}
}
