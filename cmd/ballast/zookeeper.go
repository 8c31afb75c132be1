package main

import (
	"fmt"
	"log/slog"

	"github.com/ballast-lb/ballast/cluster/zookeeper"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
)

// newZooKeeper is a reader of the ZooKeeper that ballastZooKeeper names, nil if it names none.
func newZooKeeper(own *settings.Ballast, logger *slog.Logger) (*zookeeper.Client, error) {
	if len(own.BallastZooKeeper) == 0 {
		return nil, nil
	}
	c, err := zookeeper.New(zookeeper.Options{Servers: own.BallastZooKeeper, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("ballastZooKeeper: %w", err)
	}
	return c, nil
}

// reportSource is who tells brokers' load reports: the brokers themselves, and ZooKeeper where they do not.
func reportSource(brokers reporter.Reports, keeper *zookeeper.Client) reporter.Reports {
	if keeper == nil {
		return brokers
	}
	return keeper.Behind(brokers)
}
