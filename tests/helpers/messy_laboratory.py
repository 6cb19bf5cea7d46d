"""A laboratory's export as programs write it: cp1252, semicolons, decimal commas, odd labels."""

import numpy as np


def write_laboratory(path, n=3000, seed=7):
    """Write it; a few rows have errors, and eight have degrees Fahrenheit."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(["med", "sur", "gyn", "icu", "geri"], n, p=[0.35, 0.25, 0.15, 0.1, 0.15])
    age = np.where(ward == "geri", rng.normal(82, 6, n), rng.normal(52, 18, n)).clip(18, 99)
    sex = np.where(ward == "gyn", "f", rng.choice(["f", "m"], n))
    height = np.where(sex == "m", rng.normal(178, 7, n), rng.normal(165, 6, n))
    weight = (height - 108 + rng.normal(0, 9, n)).clip(38, 160)
    icu = ward == "icu"
    creatinine = np.where(icu, rng.lognormal(0.5, 0.5, n), rng.lognormal(-0.15, 0.2, n))
    potassium, sodium = rng.normal(4.2, 0.35, n), rng.normal(139.5, 2.6, n)
    glucose = rng.lognormal(4.62, 0.18, n)
    temperature = np.where(icu, rng.normal(37.8, 0.7, n), rng.normal(36.7, 0.4, n))
    day = np.datetime64("2026-09-01") + rng.integers(0, 80, n)
    potassium[417 % n], glucose[1904 % n], sodium[888 % n] = 9.8, 1120, 14
    creatinine[2291 % n], ward[2291 % n], weight[1180 % n], height[1180 % n] = 4.1, "gyn", 41, 196
    age[1333 % n], ward[1333 % n] = 24, "geri"
    temperature[rng.choice(n, 8, replace=False)] = rng.uniform(97, 99, 8)
    ward = ward.astype(object)
    ward[rng.choice(n, 6, replace=False)] = "ICU "
    lacking, nines = rng.random(n) < 0.03, rng.random(n) < 0.01
    lines = ["Case;Ward;Admitted;Age;Sex;Größe;Weight;Creatinine;Potassium;Sodium;Glucose;Temp;Lab"]
    for i in range(n):
        date = day[i].astype(object).strftime("%d.%m.%Y")
        fields = [
            f"P-{i:04}", ward[i], date, f"{age[i]:.0f}", sex[i], f"{height[i]:.0f}",
            f"{weight[i]:.1f}", "" if lacking[i] else f"{creatinine[i]:.2f}",
            f"{potassium[i]:.1f}", f"{sodium[i]:.0f}",
            "-999" if nines[i] else f"{glucose[i]:.0f}", f"{temperature[i]:.1f}", "central",
        ]  # fmt: skip
        numbers = [text.replace(".", ",") for text in fields[3:]]
        lines.append(";".join([*fields[:3], *numbers]))
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
