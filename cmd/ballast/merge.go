package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// merge delivers the messages of several topics. stop ends the subscriptions and what reads them. Topics that do not exist are
// handed to absent; when none exists that is the error.
func merge(ctx context.Context, log topics.Log, names []string, from topics.Position, absent func(topic string)) (<-chan received, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan received)
	var wg sync.WaitGroup
	var subs []topics.Subscription
	var missing []string
	stop := func() {
		cancel()
		for _, sub := range subs {
			_ = sub.Close() // the program is done with it either way
		}
		wg.Wait()
	}
	for _, name := range names {
		sub, err := log.Subscribe(ctx, name, topics.SubscribeOptions{From: from, Existing: true, Compacted: from == topics.Earliest && compacted[name]})
		if errors.Is(err, topics.ErrNoTopic) {
			missing = append(missing, name)
			continue
		}
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("subscribe to %s: %w", name, err)
		}
		subs = append(subs, sub)
	}
	if len(subs) == 0 {
		stop()
		return nil, nil, fmt.Errorf("nothing was written to %s yet: %w", strings.Join(missing, ", "), topics.ErrNoTopic)
	}
	for _, name := range missing {
		absent(name)
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
