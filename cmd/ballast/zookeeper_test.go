package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
)

// closedBroker refuses its load report.
type closedBroker struct{}

func (closedBroker) LoadReport(context.Context, string) (event.BrokerReport, error) {
	return event.BrokerReport{}, &admin.Error{Kind: admin.Unauthorized}
}

// TestZooKeeperIsOptional: without ballastZooKeeper brokers alone are asked; a wrong address is refused with the name of the key.
func TestZooKeeperIsOptional(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	own := settings.DefaultBallast()
	keeper, err := newZooKeeper(own, quiet)
	if keeper != nil || err != nil {
		t.Fatalf("by default: %v, %v", keeper, err)
	}
	if _, is := reportSource(closedBroker{}, keeper).(closedBroker); !is {
		t.Error("without ZooKeeper the brokers are not the source")
	}
	own.BallastZooKeeper = []string{"zk1:port"}
	const want = `ballastZooKeeper: ZooKeeper address "zk1:port": it should be host or host:port`
	if _, err := newZooKeeper(own, quiet); err == nil || err.Error() != want {
		t.Errorf("a wrong address: %v", err)
	}
	own.BallastZooKeeper = []string{"zk1:2181"}
	if keeper, err = newZooKeeper(own, quiet); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := reportSource(closedBroker{}, keeper).LoadReport(t.Context(), "b:8080"); !errors.Is(err, admin.Unauthorized) || !errors.Is(err, admin.Canceled) {
		t.Errorf("when neither answers: %v", err)
	}
}
