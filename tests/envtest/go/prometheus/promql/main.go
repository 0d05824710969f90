// Command promql checks and evaluates PromQL queries against recorded scrapes, with the parser, the storage and the
// engine of Prometheus. It reads a request as JSON from standard input and writes the response to standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// request is a set of recorded targets and the queries about them.
type request struct {
	// Targets are the processes that were scraped.
	Targets []target `json:"targets"`
	// IntervalSeconds is the time between two scrapes. The last one is at the time EndSeconds.
	IntervalSeconds int64 `json:"intervalSeconds"`
	EndSeconds      int64 `json:"endSeconds"`
	// Queries are PromQL expressions by name.
	Queries map[string]string `json:"queries"`
	// Series are written as selectors. Their labels are compared with those of the recorded series.
	Series []string `json:"series"`
}

type response struct {
	Answers map[string]answer `json:"answers"`
	// Problems are the series with a label that no recorded series of the metric has.
	Problems []string `json:"problems"`
}

// target is a scraped process: its labels, and the text of each scrape. An empty text is a failed scrape.
type target struct {
	Labels  map[string]string `json:"labels"`
	Scrapes []string          `json:"scrapes"`
}

// answer is the result of one query.
type answer struct {
	// Problems are the reasons for which the expression cannot return data of these targets.
	Problems []string `json:"problems"`
	// Series are the returned values with their labels.
	Series []series `json:"series"`
}

type series struct {
	Labels map[string]string `json:"labels"`
	// Value is text, because JSON has no NaN.
	Value string `json:"value"`
}

func run() error {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return fmt.Errorf("cannot read the request: %w", err)
	}
	samples, err := parseTargets(asked)
	if err != nil {
		return err
	}
	engine, err := newEvaluator(samples)
	if err != nil {
		return err
	}
	defer engine.close()
	known := newCatalogue(samples)
	at := time.Unix(asked.EndSeconds, 0)
	told := response{Answers: make(map[string]answer, len(asked.Queries)), Problems: []string{}}
	for name, query := range asked.Queries {
		told.Answers[name] = ask(engine, known, query, at)
	}
	for _, series := range asked.Series {
		told.Problems = append(told.Problems, known.checkSeries(series)...)
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

func ask(engine *evaluator, known catalogue, query string, at time.Time) answer {
	problems, err := known.check(query)
	if err != nil {
		return answer{Problems: []string{err.Error()}, Series: []series{}}
	}
	found, err := engine.evaluate(query, at)
	if err != nil {
		problems = append(problems, err.Error())
	}
	return answer{Problems: problems, Series: found}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
