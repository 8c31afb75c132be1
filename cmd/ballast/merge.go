package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ballast-lb/ballast/topics"
)

// compacted are the topics whose keys are all that matters. Brokers delete the history of what they compacted.
var compacted = map[string]bool{topics.Decisions: true, topics.Takeover: true}

// received is a message, or why there are no more.
type received struct {
	topics.Message
	err error
}

// merge delivers the messages of several topics. stop ends the subscriptions and what reads them.
func merge(ctx context.Context, log topics.Log, names []string, from topics.Position) (<-chan received, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan received)
	var wg sync.WaitGroup
	var subs []topics.Subscription
	stop := func() {
		cancel()
		for _, sub := range subs {
			_ = sub.Close() // the program is done with it either way
		}
		wg.Wait()
	}
	for _, name := range names {
		sub, err := log.Subscribe(ctx, name, topics.SubscribeOptions{From: from, Existing: true, Compacted: from == topics.Earliest && compacted[name]})
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("subscribe to %s: %w", name, err)
		}
		subs = append(subs, sub)
	}
	for _, sub := range subs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				m, err := sub.Receive(ctx)
				if errors.Is(err, context.Canceled) || errors.Is(err, topics.ErrClosed) {
					return
				}
				select {
				case out <- received{m, err}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		}()
	}
	return out, stop, nil
}
