package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/control"
)

// viaChannel is the value of ballastVia that acts through the ownership topic.
const viaChannel = "channel"

// seenLimit is how long a record may take to be read back.
const seenLimit = 5 * time.Second

// checkVia refuses to act through the ownership topic of a cluster where nothing may be written.
func (s *session) checkVia(ctx context.Context, mode control.Mode) error {
	if mode != control.Govern || s.settings.Ballast.BallastVia != viaChannel {
		return nil
	}
	why, err := control.ChannelCheck(ctx, s.cluster)
	if err != nil {
		return err
	}
	if why.Code != "" {
		return fmt.Errorf("ballastVia is %s, and nothing may be written onto the ownership topic: %s (%s); use ballastVia=admin", viaChannel, why, why.Code)
	}
	return nil
}

// channel acts through the ownership topic. admin carries out what may not be written; nil = that is skipped.
func (s *session) channel(views *control.Views, lock *control.Lock, admin control.Actor) *control.Channel {
	own := s.settings.Ballast
	return control.NewChannel(control.ChannelOptions{Cluster: s.cluster, Topic: views, Log: s.log, Lock: lock, Clock: control.SystemClock{}, Admin: admin, Logger: s.logger,
		Limits: control.ChannelLimits{Concurrent: int(own.BallastChannelConcurrent), Seen: seenLimit, Verify: own.BallastVerifyTimeout, Poll: 20 * time.Millisecond}})
}

// errNoChannel is returned for a cluster whose ownership is not on a topic.
var errNoChannel = errors.New("this cluster has no ownership topic: only the Extensible load manager has one")

// viaChannel makes a controller act through the ownership topic. It returns what ends that, after which then runs.
func (s *session) viaChannel(o *control.Options, views view, lock *control.Lock, then func()) (end func(), err error) {
	topic, ok := views.(*control.Views)
	if !ok {
		return nil, errNoChannel
	}
	channel := s.channel(topic, lock, o.Executor)
	o.Executor = channel
	if s.settings.Ballast.BallastPrePlace {
		o.Manager = control.PrePlacing(o.Manager)
	}
	return func() {
		if err := channel.Close(); err != nil {
			s.logger.Warn("close the producer of the ownership topic", "error", err)
		}
		then()
	}, nil
}
