//! scratch
use std::io::BufRead;
fn main() {
    let mut n = 0; let mut same = 0;
    let t = std::time::Instant::now();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let v: serde_json::Value = serde_json::from_str(&line).unwrap();
        let p = vector_rules::judge(vector_rules::Catalogue::shipped(), &v["config"]);
        let errs: Vec<_> = p.iter().filter(|p| !p.check.is_advice()).collect();
        n += 1;
        if errs.is_empty() == v["valid"].as_bool().unwrap() { same += 1; } else {
            println!("DIFF {} {} valid={} says={} cfg={}", v["id"], v["tag"], v["valid"], v["says"].as_str().unwrap().replace('\n', " / ").chars().take(300).collect::<String>(), v["config"].to_string().chars().take(700).collect::<String>());
            for e in errs { println!("    {:?} {}", e.check, e.error); }
        }
    }
    println!("{same}/{n} {:?}", t.elapsed());
}
