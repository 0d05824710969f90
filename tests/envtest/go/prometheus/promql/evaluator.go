package main

import (
	"context"
	"errors"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// evaluator is a database with the recorded samples, and an engine.
type evaluator struct {
	store  *teststorage.TestStorage
	engine *promql.Engine
}

func newEvaluator(samples []sample) (*evaluator, error) {
	store, err := teststorage.NewWithError()
	if err != nil {
		return nil, err
	}
	// The database takes the samples of a series in the order of their times.
	sort.SliceStable(samples, func(i, j int) bool { return samples[i].time < samples[j].time })
	appender := store.Appender(context.Background())
	for _, one := range samples {
		_, err := appender.Append(0, one.labels, one.time, one.value)
		if err != nil && !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
			return nil, err
		}
	}
	if err := appender.Commit(); err != nil {
		return nil, err
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples:    1_000_000,
		Timeout:       time.Minute,
		LookbackDelta: 5 * time.Minute,
		Parser:        parser.NewParser(parser.Options{}),
	})
	return &evaluator{store: store, engine: engine}, nil
}

func (e *evaluator) evaluate(query string, at time.Time) ([]series, error) {
	found := []series{}
	instant, err := e.engine.NewInstantQuery(context.Background(), e.store, nil, query, at)
	if err != nil {
		return found, err
	}
	defer instant.Close()
	result := instant.Exec(context.Background())
	if result.Err != nil {
		return found, result.Err
	}
	switch value := result.Value.(type) {
	case promql.Vector:
		for _, one := range value {
			found = append(found, series{Labels: asMap(one.Metric), Value: number(one.F)})
		}
	case promql.Scalar:
		found = append(found, series{Labels: map[string]string{}, Value: number(value.V)})
	default:
		return found, errors.New("the query returns neither a vector nor a scalar")
	}
	return found, nil
}

func (e *evaluator) close() {
	_ = e.store.Close()
}

func asMap(found labels.Labels) map[string]string {
	all := map[string]string{}
	found.Range(func(one labels.Label) { all[one.Name] = one.Value })
	return all
}

func number(value float64) string {
	return strconv.FormatFloat(value, 'g', 6, 64)
}
